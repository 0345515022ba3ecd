#!/usr/bin/python3 -B
"""Four senders in a dumbbell under DCQCN, over the live NIC and in virtual time (experiments/live-and-virtual, for 4 s): the
rate of each pair here is within 10 % of what it is there, and so is the sum.

A live NIC on a machine that has no time for it is slower than its network. So there are four tries, and a thread that sleeps
for a moment again and again tells how long the machine lets those wait who want a core: where that was long in every try that
did not come out, nothing can be told, and this is skipped (exit code 77).

ROCEMU names the rocemu command to use (default: the one in PATH)."""
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[3] / "experiments"
sys.path[:0] = [str(EXPERIMENTS), str(EXPERIMENTS / "live-and-virtual")]
import experiment  # noqa: E402
from common.points import run_all  # noqa: E402

ROCEMU = os.environ.get("ROCEMU", "rocemu")
TRIES = 4
NAP_S = 0.002
BUSY_S = 0.002  # beyond the nap, every twentieth time


class Waits:
    """How late sleepers get a core while this is a context: the 95th percentile, in seconds."""

    def __enter__(self):
        self.late_s, self.over = [], False
        self.thread = threading.Thread(target=self.sleep)
        self.thread.start()
        return self

    def sleep(self):
        while not self.over:
            began = time.monotonic()
            time.sleep(NAP_S)
            self.late_s.append(time.monotonic() - began - NAP_S)

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def long_ones(self):
        return statistics.quantiles(self.late_s, n=20)[-1]


def live_try(virtual):
    """What is wrong with a live run; and whether the machine was too busy for one."""
    with Waits() as waits:
        try:
            live = experiment.live(ROCEMU, small=True)
        except SystemExit as failed:
            return [str(failed)], False
    claims = experiment.claims({**virtual, "live": live}, small=True)
    for claim in claims:
        print(f"{claim.what}: {claim.published}, {claim.seen}")
    print(f"every twentieth sleeper waited {1000 * waits.long_ones():.1f} ms for a core", flush=True)
    return [claim.what for claim in claims if not claim.comes_out], waits.long_ones() > BUSY_S


def main():
    with tempfile.TemporaryDirectory() as scratch:
        virtual = run_all(experiment.points(small=True), EXPERIMENTS / "live-and-virtual", pathlib.Path(scratch), ROCEMU, 1)
    always_busy = True
    for number in range(TRIES):
        wrong, busy = live_try(virtual)
        if not wrong:
            return print(f"try {number + 1}: live and virtual agree")
        always_busy = always_busy and busy
        print(f"try {number + 1}: not within 10 %: {', '.join(wrong)}{', on a busy machine' if busy else ''}", flush=True)
    if always_busy:
        print("SKIPPED: this machine was too busy in each of the tries for a live NIC to be as fast as its network")
        sys.exit(77)
    sys.exit("FAIL: the live NIC and the simulator do not agree")


if __name__ == "__main__":
    main()
