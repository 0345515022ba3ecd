#!/usr/bin/python3 -B
"""qemu's live migration over RDMA: a guest without KVM and without an operating system, which writes to its memory all
the while, moves from a qemu on one device to a qemu on the other. Then the memory of both is the same, byte by byte.

    migration.py [--user] CASE...      migration.py --list

--user    as an ordinary user without any capability (to be started by root)

ROCEMU names the rocemu command to use (default: the one in PATH). Exit code 77: a program is missing.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../tools")
from pairs import End
from program_cases import ROCEMU, fail, main, skip

SELF = os.path.realpath(__file__)
QEMU = "qemu-system-x86_64"
URL = "rdma:10.77.0.1:4444"
GUEST_MIB = 64
LOADED_AT, LOADED_BYTES = 16 << 20, 24 << 20  # random bytes, clear of what the firmware uses
LOW_BYTES = 640 << 10  # of memory below the devices' window
WRITTEN_AT = 0x10000  # where the guest's program writes
SECONDS = 60
DIRTY_ROUNDS = 20  # of the guest's program before it moves
# Adds 1 to each word from 0x10000 to 0x8ffff, for ever. The invlpg before every 16 words is for qemu before 9.0: its
# sync of the dirty bitmap leaves the guest's TLB as it is, so that writes through an entry which is there already are
# not seen (mended by "physmem: Fix migration dirty bitmap coherency with TCG memory access"). Once in 400 runs the last
# pass then carried no page at all, and what the guest had written since the pass before was lost. The firmware, which
# would count ticks, is kept from writing for the same reason.
BOOT_SECTOR = bytes.fromhex(
    "fa"        # cli
    "b80010"    # start: mov ax, 0x1000
    "8ec0"      # next: mov es, ax
    "31ff"      # xor di, di
    "f7c71f00"  # word: test di, 31
    "7504"      # jnz write
    "260f013d"  # invlpg [es:di]
    "26ff05"    # write: inc word [es:di]
    "83c702"    # add di, 2
    "75ee"      # jnz word
    "050010"    # add ax, 0x1000
    "3d0090"    # cmp ax, 0x9000
    "72e2"      # jb next
    "ebdd"      # jmp start
).ljust(510, b"\0") + b"\x55\xaa"


class Qemu:
    """One qemu with its QMP connection."""

    def __init__(self, folder, name, *words):
        self.path = os.path.join(folder, name)
        self.end = End(name, [QEMU, "-accel", "tcg", "-m", str(GUEST_MIB), "-nodefaults", "-vga", "none", "-nographic",
                              "-drive", f"if=floppy,format=raw,file={folder}/boot",
                              "-qmp", f"unix:{self.path}.qmp,server=on,wait=off", *words])
        self.replies = None

    def connect(self):
        deadline = time.monotonic() + SECONDS
        while self.replies is None:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self.path + ".qmp")
                connection.settimeout(SECONDS)
                self.replies = connection.makefile("rw")
            except OSError:
                connection.close()
                if self.end.code() is not None or time.monotonic() > deadline:
                    fail(f"qemu does not start\n{self.end.report()}")
                time.sleep(0.02)
        self.replies.readline()
        self.do("qmp_capabilities")

    def do(self, command, **arguments):
        self.replies.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.replies.flush()
        for line in self.replies:
            reply = json.loads(line)
            if "error" in reply:
                fail(f"{command}: {reply['error']['desc']}\n{self.end.report()}")
            if "return" in reply:
                return reply["return"]
        return fail(f"{command}: qemu has ended\n{self.end.report()}")

    def wait_until(self, condition, what):
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                fail(f"{what}\n{self.end.report()}")
            time.sleep(0.05)

    def memory(self, address, size):
        self.do("pmemsave", val=address, size=size, filename=self.path + ".memory")
        with open(self.path + ".memory", "rb") as file:
            return file.read()

    def word(self):
        return int.from_bytes(self.memory(WRITTEN_AT, 2), "little")


@contextlib.contextmanager
def two_of_them(folder, loaded):
    one = Qemu(folder, "source", "-device", f"loader,file={loaded},addr={LOADED_AT:#x},force-raw=on")
    other = Qemu(folder, "destination", "-S", "-incoming", URL)
    try:
        one.connect()
        other.connect()
        yield one, other
    finally:
        one.end.kill()
        other.end.kill()


def difference(here, there, start):
    """How many bytes, in which pages, and the first of their words, which tell how far the guest's program was."""
    wrong = [at for at, (a, b) in enumerate(zip(here, there)) if a != b]
    pages = sorted({start + at & ~0xfff for at in wrong})
    at = wrong[0] & ~1
    return (f"{len(wrong)} of {len(here)} bytes from {start:#x} on are not the same: {len(pages)} pages from {pages[0]:#x} to "
            f"{pages[-1]:#x}, at {start + at:#x} {here[at:at + 2].hex()} and {there[at:at + 2].hex()}")


def migrate(folder, pinned):
    loaded = os.path.join(folder, "loaded")
    with open(loaded, "wb") as file:
        file.write(os.urandom(LOADED_BYTES))
    with open(os.path.join(folder, "boot"), "wb") as file:
        file.write(BOOT_SECTOR)
    with two_of_them(folder, loaded) as (source, destination):
        source.wait_until(lambda: source.word() >= DIRTY_ROUNDS, "the guest's program does not run")
        for qemu in (source, destination):
            qemu.do("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pinned}])
        source.do("migrate-set-parameters", **{"max-bandwidth": 1 << 30, "downtime-limit": 2000})
        source.do("migrate", uri=URL)
        state = {}

        def over():
            state.update(source.do("query-migrate"))
            return state["status"] in ("completed", "failed", "cancelled")

        source.wait_until(over, "the migration does not end")
        if state["status"] != "completed":
            fail(f"the migration {state['status']}: {state}\n{source.end.report()}\n{destination.end.report()}")
        destination.wait_until(lambda: destination.do("query-status")["status"] == "paused", "nothing has arrived")
        for start, end in ((0, LOW_BYTES), (1 << 20, GUEST_MIB << 20)):
            here, there = source.memory(start, end - start), destination.memory(start, end - start)
            if here != there:
                fail(f"{difference(here, there, start)}; read again, the source's are "
                     f"{'the same' if source.memory(start, end - start) == here else 'others'}, the destination's "
                     f"{'the same' if destination.memory(start, end - start) == there else 'others'}")
        with open(loaded, "rb") as file:
            if destination.memory(LOADED_AT, LOADED_BYTES) != file.read():
                fail("what was loaded is not what the destination has")
        before = destination.word()
        destination.do("cont")
        destination.wait_until(lambda: destination.word() != before, "the guest does not go on")
        print(f"{state['ram']['transferred'] >> 20} MiB in {state['total-time']} ms, {state['ram']['dirty-sync-count']} "
              f"passes, down for {state['downtime']} ms")


CASES = {  # pinned or not, and what the NIC is given
    "migration": (False, []),
    "migration:pinned": (True, []),
    "migration:shared": (True, ["--share-memory"]),
    "migration:impaired": (False, ["--impair", "loss=0.5%,reorder=0.5%,dup=0.5%,corrupt=0.1%"]),
}


def run(name):
    if shutil.which(QEMU) is None:
        skip(f"{QEMU} is missing (Debian package qemu-system-x86)")
    return subprocess.run([ROCEMU, "run", *CASES[name][1], "--", SELF, "--inside", name]).returncode


def run_inside(name):
    started_at = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        migrate(folder, CASES[name][0])
    status = json.loads(subprocess.run([ROCEMU, "status", "--json"], check=True, capture_output=True).stdout)
    moved = sum(device["counters"]["rx_payload_bytes"] for device in status["devices"])
    if moved < LOADED_BYTES:
        fail(f"only {moved} bytes went over the NIC")
    print(f"PASS {name} in {time.monotonic() - started_at:.1f} s")
    return 0


sys.exit(main(SELF, sys.argv[1:], CASES, run, run_inside))
