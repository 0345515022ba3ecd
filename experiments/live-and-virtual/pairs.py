#!/usr/bin/env python3
"""Four ib_write_bw at the same time, from the first four devices of a NIC to the next four: prints Gbit/s of each."""
import subprocess
import sys
import time

PAIRS = 4
FIRST_PORT = 18600


def command(device, port, seconds):
    return ["ib_write_bw", "-d", f"rocemu{device}", "-p", str(port), "-s", "65536", "-m", "1024", "-t", "32", "-F", "--report_gbits",
            "-D", str(seconds)]


def client(pair, seconds, patience_s=20):
    """The client of a pair, once its server listens."""
    until = time.monotonic() + patience_s
    while True:
        program = subprocess.Popen(command(pair, FIRST_PORT + pair, seconds) + ["localhost"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        try:
            program.wait(1)
        except subprocess.TimeoutExpired:
            return program
        if time.monotonic() > until:
            sys.exit(f"pair {pair}: {program.stdout.read()}")


def gbit_per_s(output):
    rows = [line.split() for line in output.splitlines() if line.split()[:1] == ["65536"]]
    if not rows:
        sys.exit(f"no figure in:\n{output}")
    return float(rows[-1][3])


def main():
    seconds = int(sys.argv[1])
    servers = [subprocess.Popen(command(PAIRS + pair, FIRST_PORT + pair, seconds), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for pair in range(PAIRS)]
    clients = [client(pair, seconds) for pair in range(PAIRS)]
    for program in clients:
        print(gbit_per_s(program.communicate()[0]))
    for server in servers:
        server.wait()


if __name__ == "__main__":
    main()
