#!/usr/bin/python3 -B
"""kill_storm.py [-n TIMES]: kills one end of a running RDMA program with SIGKILL, again and again.

Each time the other end must end by itself, with an error, within the time its retries take; then the
next pair must work. At the end the NIC's counts of objects, the daemon's open descriptors and its
memory must be where they were after the first few rounds.

Every program is one whose both ends notice: an end that only answers has nothing outstanding, so it
learns of the peer's death through its TCP connection, or by its own requests where it makes some."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../tools")
from pairs import Pair, PairFailed, tcp_sockets

SKIPPED = 77
ESTABLISHED = "01"
# perftest's QPs: 4.096 us * 2^14, 7 retries; IBTA lets a timer run up to four times as long.
RETRY_SECONDS = 4.096e-6 * 2**14 * 8 * 4
MARGIN_SECONDS = 3  # for programs to notice, clean up and be scheduled on a busy machine
SETTLE_SECONDS = 10
WARM_UP_ROUNDS = 3
# AddressSanitizer keeps what was freed for a while.
MOST_GROWTH_KIB = 65536 if "ASAN_OPTIONS" in os.environ else 8192
PROGRAMS = [("ib_write_bw", ["-s", "65536"]), ("ib_write_bw", ["-s", "1024", "-b"]),
            ("ib_send_bw", ["-s", "8192", "-b"]), ("ib_read_bw", ["-s", "65536"]),
            ("ib_read_bw", ["-s", "4096", "-b"]), ("ib_write_bw", ["-s", "1048576", "-q", "4", "-b"])]


class StormFailed(Exception):
    pass


class Nic:
    """A NIC of its own, by the rocemu command."""

    def __init__(self, rocemu):
        self.rocemu = rocemu
        self.name = f"kill-storm-{os.getpid()}"

    def _run(self, *arguments):
        result = subprocess.run([self.rocemu, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, check=False, timeout=30)
        if result.returncode:
            raise StormFailed(f"rocemu {' '.join(arguments)} ended with {result.returncode}: "
                              f"{result.stderr.decode(errors='replace').strip()}")
        return result.stdout

    def __enter__(self):
        self._run("up", "--name", self.name)
        return self

    def __exit__(self, *_):
        try:
            self._run("down", "--name", self.name)
        except StormFailed as failure:
            print(f"when the NIC was taken down: {failure}")

    def environment(self):
        """What a program needs to see this NIC; with it programs are started directly, so that the
        process that is killed is the program and nothing around it."""
        listing = self._run("exec", "--name", self.name, "--", "env", "-0")
        entries = (entry.split(b"=", 1) for entry in listing.split(b"\0") if b"=" in entry)
        return {os.fsdecode(name): os.fsdecode(value) for name, value in entries}

    def status(self):
        return json.loads(self._run("status", "--json", "--name", self.name))

    def objects(self):
        """Counts of everything programs made, by device and kind, those that are not 0."""
        counts = {}
        for device in self.status()["devices"]:
            for kind, count in device.get("objects", {}).items():
                if count:
                    counts[f"{device['name']}/{kind}"] = count
        return counts


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise StormFailed(f"process {pid} has no VmRSS")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def until(condition, seconds):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def connected(port):
    return any((state, local) == (ESTABLISHED, port) for state, local, _ in tcp_sockets())


def kill_one_end(nic, environment, generator, rocemu_devices):
    """One round. Returns a line about it."""
    program, arguments = generator.choice(PROGRAMS)
    server_device, client_device = generator.choice(rocemu_devices), generator.choice(rocemu_devices)
    with Pair(program, ["-F", "-D", "60", *arguments], server_device, client_device, environment) as pair:
        pair.start_server()
        pair.start_client()
        if not until(lambda: connected(pair.port), 20):
            raise StormFailed(f"{program}: the client does not connect\n{pair.report()}")
        # From the exchange of addresses to the middle of traffic; half of the time traffic is certain.
        delay = generator.uniform(0, 0.3) if generator.random() < 0.5 else generator.uniform(0.3, 1)
        time.sleep(delay)
        victim, survivor = generator.sample(pair.ends(), 2)
        if any(end.code() is not None for end in pair.ends()):
            raise StormFailed(f"{program} ended before it was killed\n{pair.report()}")
        victim.kill()
        killed = time.monotonic()
        code = survivor.wait(RETRY_SECONDS + MARGIN_SECONDS)
        took = time.monotonic() - killed
        what = f"{program} {' '.join(arguments)}, {victim.name} killed after {delay:.2f} s"
        if code is None:
            raise StormFailed(f"{what}: the {survivor.name} still runs {took:.1f} s later\n{pair.report()}")
        if code == 0:
            raise StormFailed(f"{what}: the {survivor.name} ended as if nothing had happened\n{pair.report()}")
    if not until(lambda: not nic.objects(), SETTLE_SECONDS):
        raise StormFailed(f"{what}: objects are left: {nic.objects()}")
    # Not ib_write_bw, which begins with a second's sleep.
    with Pair("ib_send_bw", ["-F", "-n", "100", "-s", "4096"], server_device, client_device, environment) as pair:
        try:
            pair.run(30)
        except PairFailed as failure:
            raise StormFailed(f"{what}: the next pair does not work: {failure}\n{pair.report()}") from failure
    return f"{what}: {survivor.name} ended with {code} after {took:.2f} s"


def check_back_to(nic, pid, before):
    """Descriptors and memory of the daemon are where they were."""
    descriptors_before, resident_before = before
    if not until(lambda: descriptors(pid) <= descriptors_before and not nic.objects(), SETTLE_SECONDS):
        raise StormFailed(f"the daemon has {descriptors(pid)} descriptors, it had {descriptors_before}; "
                          f"objects: {nic.objects()}")
    growth = resident_kib(pid) - resident_before
    if growth > MOST_GROWTH_KIB:
        raise StormFailed(f"the daemon's memory grew by {growth} KiB from {resident_before} KiB")
    return f"{descriptors(pid)} descriptors (before: {descriptors_before}), memory {growth:+} KiB"


def storm(nic, times, generator):
    environment = nic.environment()
    pid = nic.status()["pid"]
    devices = [device["name"] for device in nic.status()["devices"]]
    before = None
    for number in range(1, WARM_UP_ROUNDS + times + 1):
        if nic.status()["pid"] != pid:
            raise StormFailed("the daemon is another process than before")
        print(f"{number:4} {kill_one_end(nic, environment, generator, devices)}", flush=True)
        if number == WARM_UP_ROUNDS:
            before = (descriptors(pid), resident_kib(pid))
    return check_back_to(nic, pid, before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    missing = [program for program, _ in PROGRAMS if shutil.which(program) is None]
    if missing:
        print(f"SKIP: {', '.join(sorted(set(missing)))} missing (Debian package perftest)")
        return SKIPPED
    # Whoever ends this program does not want its NIC to stay.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"kill_storm: seed {arguments.seed}")
    try:
        with Nic(os.environ.get("ROCEMU", "rocemu")) as nic:
            summary = storm(nic, arguments.times, random.Random(arguments.seed))
    except (StormFailed, PairFailed) as failure:
        print(f"FAIL {failure}\n(choices repeat with --seed {arguments.seed}; the instants do not)")
        return 1
    print(f"PASS {WARM_UP_ROUNDS} and {arguments.times} kills; {summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
