#!/usr/bin/env python3
"""Four ib_write_bw at the same time, from the first four devices of a NIC to the next four: prints Gbit/s of each."""
import subprocess
import sys
import time
from pathlib import Path

PAIRS = 4
FIRST_PORT = 18600


def command(device, port, seconds):
    return ["ib_write_bw", "-d", f"rocemu{device}", "-p", str(port), "-s", "65536", "-m", "1024", "-t", "32", "-F", "--report_gbits",
            "-D", str(seconds)]


def listening_ports():
    """Of TCP, as the kernel lists them: a port in hexadecimal behind the address, 0A for LISTEN."""
    rows = [line.split() for file in ("/proc/net/tcp", "/proc/net/tcp6") if Path(file).exists()
            for line in Path(file).read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}


def await_servers(servers, patience_s=30):
    """All listen, so that all clients begin at the same time: a pair that is alone for a while has more of the link."""
    until = time.monotonic() + patience_s
    wanted = {FIRST_PORT + pair for pair in range(PAIRS)}
    while not wanted <= listening_ports():
        if time.monotonic() > until or any(server.poll() is not None for server in servers):
            sys.exit("not all servers of ib_write_bw listen")
        time.sleep(0.02)


def gbit_per_s(output):
    rows = [line.split() for line in output.splitlines() if line.split()[:1] == ["65536"]]
    if not rows:
        sys.exit(f"no figure in:\n{output}")
    return float(rows[-1][3])


def main():
    seconds = int(sys.argv[1])
    servers = [subprocess.Popen(command(PAIRS + pair, FIRST_PORT + pair, seconds), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for pair in range(PAIRS)]
    await_servers(servers)
    clients = [subprocess.Popen(command(pair, FIRST_PORT + pair, seconds) + ["localhost"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for pair in range(PAIRS)]
    for program in clients:
        print(gbit_per_s(program.communicate()[0]))
    for server in servers:
        server.wait()


if __name__ == "__main__":
    main()
