#!/usr/bin/python3 -B
"""The NIC on arm64: a build for it in a virtual machine (qemu's software emulation, Debian's kernel and programs).

    run_arm64.py BUILD [--short] [--only REGEX] [--list]

BUILD is the folder that scripts/arm64.sh has built into, or a tarball of scripts/release.sh, which is unpacked there and run
without more, so that rows of the tests' own programs are left out. Unmodified programs over a NIC with two devices, as root and as
an ordinary user, with memory that the NIC maps and with impairments; and the tests' own programs, that check every byte.

--short  the rows that are marked so
--only   rows whose words match

Needs no root. Exit code 77: it could not be run here; the last line says why."""
import argparse
import gzip
import os
import re
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import image
from guest import Guest
from machine_kind import ARM64
from packed_nic import PREFIX, archive

SKIPPED = 77
ROW_SECONDS = 240
OWN_PROGRAMS = ["verbs", "stress", "bad_input", "verb_table"]
VERB_TABLE = Path(__file__).resolve().parents[2] / "docs/compatibility.md"


@dataclass(frozen=True)
class Row:
    words: str  # of rocemu run, and the program's
    short: bool = False


def pair(program, words, options=""):
    return f"{options} --server '{program} -d rocemu0 {words}' -- {program} -d rocemu1 {words} localhost"


ROWS = [
    Row("-- ibv_devinfo", True),
    Row(pair("ib_write_bw", "-F -n 200"), True),
    Row(pair("ib_write_bw", "-F -n 200", "--share-memory"), True),
    Row(pair("ib_write_bw", "-F -n 200", "--impair loss=1%"), True),
    Row(pair("ib_read_bw", "-F -n 200")),
    Row(pair("ib_send_bw", "-F -n 200")),
    Row(pair("ib_send_lat", "-F -n 500"), True),
    Row(pair("ib_send_lat", "-F -n 500", "--share-memory")),
    Row(pair("ib_write_lat", "-F -n 500", "--share-memory")),
    Row(pair("ib_atomic_bw", "-F -n 200")),
    Row(pair("ib_atomic_bw", "-F -n 200", "--share-memory")),
    Row(pair("ib_send_bw", "-F -n 200 -c UD -s 1024")),
    Row("--server 'ibv_rc_pingpong -d rocemu0 -g 1 -c' -- ibv_rc_pingpong -d rocemu1 -g 1 -c localhost", True),
    Row("--server 'ibv_srq_pingpong -d rocemu0 -g 1' -- ibv_srq_pingpong -d rocemu1 -g 1 localhost"),
    Row("--server 'rping -s -a 10.77.0.1 -C 20 -V' -- rping -c -a 10.77.0.1 -C 20 -V", True),
    Row("-- stress --seconds 10 --processes 2", True),
    Row("--share-memory -- stress --seconds 10 --processes 2"),
    Row("--impair loss=1%,reorder=1% -- stress --seconds 10 --processes 2"),
    # A row that measures the processor's time, of which qemu's emulation takes more than there is.
    Row("-- verbs --except 'costs less than half a core'"),
    Row(f"-- verb_table /{PREFIX}/share/{VERB_TABLE.name} rocemu0"),
    Row("-- bad_input"),
]


def skip(why):
    print(f"SKIP: nothing was run on arm64: {why}", flush=True)
    sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def own_programs(build):
    folder = build / "tests/e2e"
    return [folder / name for name in OWN_PROGRAMS if (folder / name).exists()]


def runs_own_program(row):
    return any(f"-- {name}" in row.words for name in OWN_PROGRAMS)


def put_in_place(guest, build):
    """Unpacks the NIC in the guest, with its programs where they are found."""
    if build.is_file():
        guest.unpack(gzip.decompress(build.read_bytes()))
        guest.run("ln -s /rocemu-*/bin/* /usr/local/bin/")
        return
    cache = Path(os.environ.get("ROCEMU_ARM64_CACHE", Path.home() / ".cache/rocemu-arm64"))
    guest.unpack(archive(build / "bin/rocemu", guest.libraries(), ARM64, cache / "root", own_programs(build), [VERB_TABLE]))
    guest.run(f"ln -s /{PREFIX}/bin/* /usr/local/bin/")


def run_row(guest, row, user):
    """Whether it ended well."""
    started = time.monotonic()
    command = f"rocemu run {row.words}"
    running = guest.start(f"su -s /bin/sh nobody -c {shlex.quote(command)}" if user else command)
    code = running.wait(ROW_SECONDS)
    running.stop()
    well = code == 0
    who = "an ordinary user" if user else "root"
    print(f"{'ok  ' if well else 'FAIL'} {row.words.strip()} ({who}, {time.monotonic() - started:.1f} s)", flush=True)
    if not well:
        lines = running.output().splitlines()
        print("\n".join([line for line in lines[:-30] if "FAIL" in line] + lines[-30:]), flush=True)
    return well


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = parse()
    rows = [row for row in ROWS if (row.short or not options.short) and re.search(options.only, row.words)
            and not (options.build.is_file() and runs_own_program(row))]
    if options.list:
        print("\n".join(row.words for row in rows))
        return 0
    if shutil.which(ARM64.qemu) is None:
        skip(f"{ARM64.qemu} is missing (Debian package {ARM64.qemu_package})")
    if not options.build.is_file() and not (options.build / "bin/rocemu").exists():
        skip(f"there is no build in {options.build}; scripts/arm64.sh --build makes one")
    try:
        folder = image.get(ARM64)
    except image.ImageUnavailable as why:
        skip(f"no image of the virtual machine: {why}")
    with Guest(folder, [], {"name": "arm64"}, memory="2G", kind=ARM64) as guest:
        print(f"the machine is up after {guest.boot_seconds:.1f} s: {guest.run('uname -srm').strip()}", flush=True)
        put_in_place(guest, options.build)
        results = [run_row(guest, row, user) for row in rows for user in (False, True)]
    print(f"{sum(results)} of {len(results)} ended well")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
