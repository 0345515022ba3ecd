#!/usr/bin/python3 -B
"""pair.py [options] -- PROGRAM [ARGUMENTS]: runs PROGRAM ARGUMENTS -d DEVICE -p PORT as a server, and
once it listens a second time as its client. Succeeds when both ends do."""
import argparse
import re
import shutil
import sys

from pairs import Pair, PairFailed

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="rocemu0", metavar="DEVICE")
    parser.add_argument("--client", default="rocemu1", metavar="DEVICE")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--forbid", metavar="REGEX", help="text that neither end may print")
    parser.add_argument("--verbose", action="store_true", help="prints both outputs even on success")
    parser.add_argument("command", nargs="+", metavar="PROGRAM")
    arguments = parser.parse_args()
    program, *rest = arguments.command
    if shutil.which(program) is None:
        print(f"SKIP: {program} is missing")
        return SKIPPED
    what = f"{' '.join(arguments.command)}, {arguments.client} to {arguments.server}"
    with Pair(program, rest, arguments.server, arguments.client) as pair:
        try:
            pair.run(arguments.timeout)
            found = arguments.forbid and re.search(arguments.forbid, pair.report())
            if found:
                raise PairFailed(f"printed: {found.group()}")
        except PairFailed as failure:
            print(f"FAIL {what}: {failure}\n{pair.report()}")
            return 1
        print(f"PASS {what}")
        if arguments.verbose:
            print(pair.report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
