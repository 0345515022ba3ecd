#!/usr/bin/python3 -B
"""perftest_matrix.py [PREFIX]: runs the lines of perftest_matrix.txt, or those whose program begins so,
each a server on rocemu0 and a client on rocemu1 of the NIC that this runs in."""
import contextlib
import os
import shutil
import sys

from pairs import Pair, PairFailed

SKIPPED = 77
SECONDS = 60
TABLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "perftest_matrix.txt")


def lines(prefix):
    with open(TABLE, encoding="ascii") as table:
        for line in table:
            words = line.split("#")[0].split()
            if words and words[0].startswith(prefix):
                yield words


def remove_xrc_domains():
    """The files that perftest opens its XRC domains by, which it leaves behind: another user may not open them."""
    for end in ("server", "client"):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.remove(f"/tmp/xrc_domain_{end}")


def main(prefix=""):
    remove_xrc_domains()
    try:
        return run_lines(prefix)
    finally:
        remove_xrc_domains()


def run_lines(prefix):
    failed = count = 0
    for program, *options in lines(prefix):
        if shutil.which(program) is None:
            print(f"SKIP: {program} is missing (Debian package perftest)")
            return SKIPPED
        count += 1
        with Pair(program, ["-F", *options], "rocemu0", "rocemu1") as pair:
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
