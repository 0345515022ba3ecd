#!/usr/bin/python3 -B
"""link_lost.py: while a program sends, its link loses everything. Every request in flight must then fail
with IBV_WC_RETRY_EXC_ERR (12) after the time of timeout and retry_cnt, and when the link is well again
the devices must be, too.

ROCEMU names the rocemu command to use (default: the one in PATH)."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../tools")
from pairs import Pair, PairFailed

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
RETRY_EXCEEDED = re.compile(r"retry|status 12|syndrom 0x81", re.IGNORECASE)
# perftest's retry_cnt is 7: eight timeouts of 4.096 us * 2^TIMEOUT each, which the NIC may take up to
# four times as long for (IBTA vol 1, 9.7.6.1.3); a second is for the program to end in.
TIMEOUT_CODE = 14
EXPECTED_SECONDS = 8 * 4.096e-6 * 2**TIMEOUT_CODE
LATEST_SECONDS = 4 * EXPECTED_SECONDS + 1


def link_set(*words):
    subprocess.run([ROCEMU, "link", "set", *words], check=True)


def frames_sent():
    status = json.loads(subprocess.run([ROCEMU, "status", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    return sum(device["counters"]["tx_frames"] for device in status["devices"])


def wait_for_traffic(pair, program):
    before, deadline = frames_sent(), time.monotonic() + 20
    while frames_sent() < before + 1000:
        if pair.client.code() is not None or time.monotonic() > deadline:
            raise PairFailed(f"{program} does not send\n{pair.report()}")
        time.sleep(0.02)


def lose_link(program, words):
    with Pair(program, ["-F", "-D", "60", "-s", "16384", "-u", str(TIMEOUT_CODE)], "rocemu0", "rocemu1") as pair:
        pair.start_server()
        pair.start_client()
        wait_for_traffic(pair, program)
        lost_at = time.monotonic()
        link_set(*words)
        code = pair.client.wait(LATEST_SECONDS)
        seconds = time.monotonic() - lost_at
        link_set("all", "none")
        what = f"{program}, link set {' '.join(words)}"
        if code is None:
            raise PairFailed(f"{what}: the client runs on after {seconds:.2f} s\n{pair.report()}")
        if code == 0 or not RETRY_EXCEEDED.search(pair.client.output()):
            raise PairFailed(f"{what}: no retry-exceeded error\n{pair.report()}")
        if seconds < EXPECTED_SECONDS * 0.9:
            raise PairFailed(f"{what}: failed after {seconds:.2f} s, too early\n{pair.report()}")
        print(f"PASS {what}: ended after {seconds:.2f} s")


def inside():
    lose_link("ib_write_bw", ["all", "loss=100%"])
    lose_link("ib_send_bw", ["rocemu1", "tx", "loss=100%"])
    lose_link("ib_read_bw", ["rocemu1", "rx", "loss=100%"])
    lose_link("ib_write_bw", ["rocemu0", "both", "outage=3600s/1ns"])
    with Pair("ib_write_bw", ["-F", "-n", "100"], "rocemu0", "rocemu1") as pair:
        pair.run(30)
    print("PASS ib_write_bw afterwards")


def main():
    for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
        if shutil.which(program) is None:
            print(f"SKIP: {program} is missing")
            return SKIPPED
    if sys.argv[1:] != ["--inside"]:
        return subprocess.run([ROCEMU, "run", "--", sys.executable, "-B", __file__, "--inside"]).returncode
    try:
        inside()
    except PairFailed as failure:
        print(f"FAIL {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
