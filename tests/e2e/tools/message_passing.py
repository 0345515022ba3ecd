"""How UCX's and Open MPI's programs are started over a NIC, as their versions want it."""
import functools
import os
import re
import subprocess


@functools.cache
def ucx_perftest():
    """The command. One that was built with MPI, as Debian 13's is, is a program of MPI unless told otherwise."""
    usage = subprocess.run(["ucx_perftest", "-h"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return ["ucx_perftest", *(["-P", "0"] if re.search(r"^\s*-P ", usage, re.MULTILINE) else [])]


def mpirun(program, ranks, transports):
    """`ranks` processes of the program, a list of words, over UCX on the NIC's two devices in turn. A shell says to each
    rank which is its own: mpirun of Open MPI 5.0.7 crashes where ranks have options of their own."""
    return ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else []), "-np", str(ranks),
            "--mca", "pml", "ucx", "--mca", "btl", "^openib", "--mca", "osc", "ucx", "-x", f"UCX_TLS={transports}",
            "sh", "-c", 'UCX_NET_DEVICES=rocemu$((OMPI_COMM_WORLD_RANK % 2)):1 exec "$0" "$@"', *program]
