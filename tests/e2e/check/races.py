#!/usr/bin/python3 -B
"""races.py CASE: races of programs that nobody here wrote (docs/check-found.md), found by the checker alone. Each is tried
until it is found; where a race shows what it does, the finding has to be there. Exit code 77: the program is missing, or
its race did not happen in so many tries."""
import os
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from program_cases import ROCEMU, fail, skip

TRIES = 20
SERVER_DEVICE, CLIENT_DEVICE, SERVER = ["-d", "rocemu0", "-g", "1"], ["-d", "rocemu1", "-g", "1"], "10.77.0.1"
PINGPONG = ["ibv_rc_pingpong", "-e", "-t", "-n", "2000"]
LATENCY = ["ib_send_lat", "-R", "-F", "-n", "100"]
RPING = ["-a", SERVER, "-C", "3"]
# The finding, what is seen when the race is lost, server and client.
CASES = {
    "rping": ("channel-in-use", "rdma_get_cm_event: Bad file descriptor", ["rping", "-s", *RPING], ["rping", "-c", *RPING]),
    "pingpong": ("empty-event", "poll CQ failed 2", [*PINGPONG, *SERVER_DEVICE], [*PINGPONG, *CLIENT_DEVICE, "localhost"]),
    "listens-twice": ("listen-gap", "RDMA_CM_EVENT_REJECTED; error: 8", LATENCY, [*LATENCY, SERVER]),
}


def attempt(server, client):
    """What both ends say."""
    command = ["timeout", "-k", "5", "15", ROCEMU, "run", "--check=all,-leaks", "--server", " ".join(server), "--", *client]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.stdout


def main(case):
    finding, symptom, server, client = CASES[case]
    if shutil.which(client[0]) is None:
        skip(f"{client[0]} is missing")
    for _ in range(TRIES):
        said = attempt(server, client)
        if f"rocemu check: {finding}" in said:
            print(f"PASS {case}: {finding}")
            return
        # Of the channel that is closed too soon there is nobody left to tell.
        if symptom in said and case != "rping":
            print(said)
            fail(f"{case}: '{symptom}', and no {finding}")
    skip(f"{case}: the race did not happen in {TRIES} tries")


main(sys.argv[1])
