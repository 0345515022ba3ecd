#!/usr/bin/python3 -B
"""A disk over iSER: tgt's target on one device, libiscsi within qemu's programs as the initiator.

    iser.py [--user] CASE...      iser.py --list

--user    as an ordinary user without any capability (to be started by root)

ROCEMU names the rocemu command to use (default: the one in PATH). Each case gets its own NIC, target and disk. Exit
code 77: a program is missing.
"""
import contextlib
import filecmp
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../tools")
from pairs import End, choose_port
from program_cases import ROCEMU, fail, main, skip

SELF = os.path.realpath(__file__)
TARGET = "iqn.2026-01.test:disk"
INITIATOR = "iqn.2008-11.org.linux-kvm"  # the name that qemu's programs log in with
URL = f"iser://10.77.0.1/{TARGET}/1"
DISK_BYTES = 32 << 20
# A request of more over iSER, as qemu-img convert makes them, fails with ENOMEM in libiscsi 1.19, and qemu-img crashes.
COPY_BYTES = "64k"
SECONDS = 60
PROGRAMS = {"tgtd": "tgt", "tgtadm": "tgt", "qemu-img": "qemu-utils", "qemu-nbd": "qemu-utils", "fio": "fio"}


def must_run(*words):
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS, text=True)
    except subprocess.TimeoutExpired as late:
        fail(f"{' '.join(words)} did not end within {SECONDS} s\n{late.stdout}")
    if done.returncode != 0:
        fail(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def wait_until(end, condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if end.code() is not None or time.monotonic() > deadline:
            fail(f"{what}\n{end.report()}")
        time.sleep(0.02)


@contextlib.contextmanager
def started(name, *words):
    """A program that stays until the end of the block; there it is killed, since tgtd takes a SIGTERM for nothing
    while a connection is being closed."""
    end = End(name, list(words))
    try:
        yield end
    finally:
        end.kill()


def tgtadm(*words):
    return must_run("tgtadm", "--lld", "iser", *words)


@contextlib.contextmanager
def target(folder):
    """tgtd with one disk, whose file is yielded. Its port for iSER is always 3260: in 1.0.85 the option that changes
    it takes an old errno for a mistake."""
    disk = os.path.join(folder, "disk")
    with open(disk, "wb") as file:
        file.truncate(DISK_BYTES)
    os.environ["TGT_IPC_SOCKET"] = os.path.join(folder, "tgtd")
    with started("tgtd", "tgtd", "-f", "--iscsi", f"portal=127.0.0.1:{choose_port()}") as tgtd:
        ready = ["tgtadm", "--lld", "iser", "--mode", "target", "--op", "show"]
        wait_until(tgtd, lambda: subprocess.run(ready, capture_output=True).returncode == 0, "tgtd does not start")
        tgtadm("--mode", "target", "--op", "new", "--tid", "1", "--targetname", TARGET)
        tgtadm("--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", "1", "--backing-store", disk)
        # Both, since 1.0.85 wants an initiator's address and name to be permitted.
        tgtadm("--mode", "target", "--op", "bind", "--tid", "1", "--initiator-address", "ALL")
        tgtadm("--mode", "target", "--op", "bind", "--tid", "1", "--initiator-name", INITIATOR)
        yield disk


def must_be_same(one, other, what):
    if not filecmp.cmp(one, other, shallow=False):
        fail(f"{what}: {one} and {other} differ")


def image(folder):
    """An image is written to the disk by qemu-img and read back: the file behind the disk, and what is read, are it."""
    original, back = os.path.join(folder, "original"), os.path.join(folder, "back")
    with open(original, "wb") as file:
        file.write(os.urandom(DISK_BYTES))
    copy = ["qemu-img", "dd", "-f", "raw", "-O", "raw", "bs=" + COPY_BYTES]
    with target(folder) as disk:
        must_run(*copy, "if=" + original, "of=" + URL)
        must_be_same(original, disk, "written")
        must_run(*copy, "if=" + URL, "of=" + back)
        must_be_same(original, back, "read")


def fio(folder):
    """fio's blocks of many sizes, written at random and read back with their checksums, through qemu-nbd."""
    socket = os.path.join(folder, "nbd")
    with target(folder) as disk:
        with started("qemu-nbd", "qemu-nbd", "--persistent", "-f", "raw", "--socket", socket, URL) as nbd:
            wait_until(nbd, lambda: os.path.exists(socket), "qemu-nbd does not start")
            said = must_run("fio", "--name=job", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--rw=randwrite",
                            "--bsrange=512-64k", "--size=16m", "--iodepth=16", "--verify=crc32c", "--verify_fatal=1",
                            "--randseed=7", "--minimal")
            fields = next(line for line in said.splitlines() if line.startswith("3;")).split(";")
            error, read_kib, written_kib = int(fields[4]), int(fields[5]), int(fields[46])
            if error != 0 or written_kib < 16000 or read_kib < written_kib:
                fail(f"fio verified {read_kib} KiB of {written_kib} KiB, error {error}\n{said}")
            with open(disk, "rb") as file:
                if not any(file.read(1 << 20)):
                    fail("nothing was written to the disk")


CASES = {"iser:image": image, "iser:fio": fio}


def run(name):
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            skip(f"{program} is missing (Debian package {package})")
    if not glob.glob("/usr/lib/*/qemu/block-iscsi.so"):
        skip("qemu's block-iscsi.so is missing (Debian package qemu-block-extra)")
    return subprocess.run([ROCEMU, "run", "--", SELF, "--inside", name]).returncode


def run_inside(name):
    os.environ["PATH"] += ":/usr/sbin"
    started_at = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        CASES[name](folder)
    print(f"PASS {name} in {time.monotonic() - started_at:.1f} s")
    return 0


sys.exit(main(SELF, sys.argv[1:], CASES, run, run_inside))
