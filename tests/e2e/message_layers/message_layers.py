#!/usr/bin/python3 -B
"""Unmodified programs that pass messages by libraries above verbs: UCX's ucx_perftest, OpenMPI over UCX.

    message_layers.py [--user] CASE...      message_layers.py --list

--user    as an ordinary user without any capability (to be started by root)

ROCEMU names the rocemu command to use (default: the one in PATH), MPI_PROGRAMS the folder of hello and ring
(tests/e2e/mpi). Each case gets its own NIC with two devices, of which each end uses one, and afterwards both
must have sent frames. Exit code 77: a program is missing.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from message_passing import mpirun, ucx_perftest
from pairs import End, Pair, PairFailed
from program_cases import ROCEMU, fail, main, need_ucx_over_verbs, skip

SELF = os.path.realpath(__file__)
DEVICES = {"server": "rocemu0", "client": "rocemu1"}
SECONDS = 60

UCP = ["tag_bw", "tag_lat", "tag_sync_bw", "tag_sync_lat", "ucp_put_bw", "ucp_put_lat", "ucp_get", "ucp_add", "ucp_fadd",
       "ucp_swap", "ucp_cswap", "stream_bw", "stream_lat", "ucp_am_bw", "ucp_am_lat"]
# What these two transports of UCX have: no swap over verbs, nothing one-sided over UD.
UCT = {"rc_verbs": ["am_lat", "am_bw", "put_lat", "put_bw", "get -D bcopy", "get -D zcopy -s 65536", "add_lat", "add_mr",
                    "fadd", "cswap", "am_bw -D bcopy -s 4000", "put_bw -D zcopy -s 65536"],
       "ud_verbs": ["am_lat", "am_bw", "am_bw -D bcopy -s 4000", "am_bw -D zcopy -s 4000"]}
LARGE = ["tag_bw", "ucp_put_bw", "ucp_get", "stream_bw", "ucp_am_bw"]


class UcxPair(Pair):
    """ucx_perftest is told its device by the environment, and the server its test by the client."""

    def __init__(self, arguments, transports, device_option):
        super().__init__("ucx_perftest", arguments, DEVICES["server"], DEVICES["client"])
        self.transports, self.device_option = transports, device_option

    def _start(self, name, host):
        environment = dict(os.environ, UCX_TLS=self.transports, UCX_NET_DEVICES=self.devices[name] + ":1")
        command = [*ucx_perftest(), "-p", str(self.port)]
        if name == "client":
            command += self.arguments + host
            if self.device_option:
                command += ["-d", self.devices[name] + ":1", "-x", self.transports]
        elif self.device_option:
            # The client names the device of both: it then talks to itself. From UCX 1.18 on the server is told it, too.
            environment["UCX_NET_DEVICES"] = "all"
            command += ["-d", self.devices["client"] + ":1", "-x", self.transports]
        return End(name, command, environment)


def ucx(transports, tests, device_option=False, options=()):
    def run():
        for test in tests:
            with UcxPair(["-n", "100", "-w", "10", *options, "-t", *test.split()], transports, device_option) as pair:
                what = f"ucx_perftest {' '.join(pair.arguments)} over {transports}"
                try:
                    pair.run(SECONDS)
                except PairFailed as failure:
                    fail(f"{what}: {failure}\n{pair.report()}")
                print(f"PASS {what}", flush=True)
    return run


def mpi(program, ranks, expected, transports="rc_verbs,ud_verbs:aux,self"):
    def run():
        words = mpirun([os.path.join(os.environ["MPI_PROGRAMS"], program)], ranks, transports)
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=SECONDS, text=True)
        except subprocess.TimeoutExpired as late:
            fail(f"{program} of {ranks} ranks did not end within {SECONDS} s\n{late.stdout}")
        missing = [line for line in expected if line not in done.stdout.splitlines()]
        if done.returncode != 0 or missing:
            fail(f"{program} of {ranks} ranks ended with {done.returncode}, without {missing}\n{done.stdout}")
        print(f"PASS {program} of {ranks} ranks over {transports}", flush=True)
    return run


def all_of(*runs):
    def run():
        for one in runs:
            one()
    return run


CASES = {
    "ucx:rc": ucx("rc_verbs,ud_verbs:aux", UCP),
    "ucx:ud": ucx("ud_verbs", UCP),
    "ucx:large": all_of(ucx("rc_verbs,ud_verbs:aux", LARGE, options=["-s", "1000000"]),
                        ucx("ud_verbs", LARGE, options=["-s", "100000"])),
    "ucx:transports": all_of(*(ucx(transport, tests, device_option=True) for transport, tests in UCT.items())),
    "mpi": all_of(mpi("hello", 2, ["hello from 0 of 2", "hello from 1 of 2"]),
                  mpi("ring", 2, ["20 hops, 20 counted"]),
                  mpi("ring", 4, ["40 hops, 40 counted"]),
                  mpi("ring", 2, ["20 hops, 20 counted"], transports="ud_verbs,self")),
}


def run_inside(name):
    CASES[name]()
    text = subprocess.run([ROCEMU, "status", "--json"], check=True, capture_output=True).stdout
    for device in json.loads(text)["devices"]:
        if name != "ucx:transports" and device["counters"]["tx_frames"] == 0:
            fail(f"{name}: {device['name']} has sent nothing")


def run(name):
    needed = [("mpirun", "openmpi-bin")] if name == "mpi" else [("ucx_perftest", "ucx-utils")]
    for program, package in needed:
        if shutil.which(program) is None:
            skip(f"{program} is missing (Debian package {package})")
    need_ucx_over_verbs()
    if name == "mpi" and "MPI_PROGRAMS" not in os.environ:
        skip("the MPI programs were not built (Debian package libopenmpi-dev)")
    return subprocess.run([ROCEMU, "run", "--", SELF, "--inside", name]).returncode


sys.exit(main(SELF, sys.argv[1:], CASES, run, run_inside))
