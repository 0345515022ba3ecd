#!/usr/bin/python3 -B
"""program_matrix.py TABLE [PREFIX]: runs the lines of TABLE (perftest_matrix.txt, pingpong_matrix.txt), or those whose
program begins so, each a server on rocemu0 and a client on rocemu1 of the NIC that this runs in. Of perftest -F is
always asked (no warning about the CPU's frequency)."""
import contextlib
import os
import shutil
import sys

from pairs import Pair, PairFailed

SKIPPED = 77
SECONDS = 150  # of -a most goes into measuring the processor, which takes its time on a loaded machine


def lines(table, prefix):
    with open(table, encoding="ascii") as text:
        for line in text:
            words = line.split("#")[0].split()
            if words and words[0].startswith(prefix):
                yield words


def remove_xrc_domains():
    """The files that perftest opens its XRC domains by, which it leaves behind: another user may not open them."""
    for end in ("server", "client"):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.remove(f"/tmp/xrc_domain_{end}")


def main(table, prefix=""):
    remove_xrc_domains()
    try:
        return run_lines(table, prefix)
    finally:
        remove_xrc_domains()


def run_lines(table, prefix):
    failed = count = 0
    for program, *options in lines(table, prefix):
        if shutil.which(program) is None:
            print(f"SKIP: {program} is missing (Debian packages perftest, ibverbs-utils)")
            return SKIPPED
        count += 1
        always = ["-F"] if program.startswith("ib_") else []
        with Pair(program, [*always, *options], "rocemu0", "rocemu1") as pair:
            try:
                pair.run(SECONDS)
                verdict = "PASS"
            except PairFailed as failure:
                failed += 1
                print(f"{failure}\n{pair.report()}")
                verdict = "FAIL"
        print(f"{verdict} {program} {' '.join(options)}", flush=True)
    print(f"{count} runs, {failed} failed")
    return 1 if failed or not count else 0


sys.exit(main(*sys.argv[1:]))
