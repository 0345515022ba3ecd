#!/usr/bin/python3 -B
"""program_matrix.py TABLE [PREFIX] [--leave-out REGEX] [--every N]: runs the lines of TABLE (perftest_matrix.txt,
pingpong_matrix.txt), or those whose program begins so, without those that match REGEX, and of them each Nth.
Each is a server on rocemu0 and a client on rocemu1 of the NIC that this runs in, LANES at a time: the programs spend most of
their time asleep or measuring the processor's frequency. Of perftest -F is always asked (no warning about that frequency)."""
import argparse
import concurrent.futures
import contextlib
import os
import re
import shutil
import sys

sys.path.append(sys.path[0] + "/../tools")
from pairs import Pair, PairFailed

SKIPPED = 77
LANES = 3
SECONDS = 150  # much goes into measuring the processor, which takes its time on a loaded machine


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("prefix", nargs="?", default="")
    parser.add_argument("--leave-out", metavar="REGEX")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    options = parser.parse_args()
    remove_xrc_domains()
    try:
        chosen = [words for words in lines(options.table, options.prefix)
                  if options.leave_out is None or not re.search(options.leave_out, " ".join(words))]
        return run_lines(chosen[::options.every])
    finally:
        remove_xrc_domains()


def run_line(program, *options):
    """Whether it went well, and what is to be said of it."""
    always = ["-F"] if program.startswith("ib_") else []
    with Pair(program, [*always, *options], "rocemu0", "rocemu1") as pair:
        try:
            pair.run(SECONDS)
            return True, f"PASS {program} {' '.join(options)}"
        except PairFailed as failure:
            return False, f"{failure}\n{pair.report()}\nFAIL {program} {' '.join(options)}"


def run_lines(chosen):
    for program in {program for program, *_ in chosen}:
        if shutil.which(program) is None:
            print(f"SKIP: {program} is missing (Debian packages perftest, ibverbs-utils)")
            return SKIPPED
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        for went_well, text in lanes.map(lambda words: run_line(*words), chosen):
            failed += not went_well
            print(text, flush=True)
    print(f"{len(chosen)} runs, {failed} failed")
    return 1 if failed or not chosen else 0


sys.exit(main())
