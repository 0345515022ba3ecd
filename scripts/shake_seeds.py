#!/usr/bin/python3 -B
"""Runs the end-to-end tests over NICs that are shaken (docs/shake.md) at many seeds, and says which failed at which: those
of tests/e2e/shake that ctest runs at three, by what stands before their seed.

    scripts/shake_seeds.py --seeds 100                      # all of them, build/release; may be ended at any time
    scripts/shake_seeds.py --seeds 100                      # and goes on where it was
    scripts/shake_seeds.py --seeds 20 --only ucx --only mpi
    scripts/shake_seeds.py --only cm --first 17 --seeds 1 --out /tmp/again   # one again
    scripts/shake_seeds.py --table                          # of what was run until now

OUT/results.json has for each row the seeds that passed, were skipped, and failed and how. What is in it is not run again
unless --anew says so. What a test that failed has printed is kept in OUT/NAME-SEED.log. A test that fails is run again,
so that what fails at each try is told from what fails on a busy machine. The exit code is 0 when nothing failed, 1 when
something did, and 3 when the run was ended before its end."""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OF_ONE_SEED = re.compile(r"^e2e/shake/(.*)-1$")
ITS_SEED = re.compile(r"\bseed=1\b")
SKIPPED = 77
FAILED, UNFINISHED = 1, 3


class Ended(Exception):
    """Somebody wants the run to end."""


def tests_of(build):
    """The tests at seed 1 by name."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-C", "long", "--show-only=json-v1"], check=True, capture_output=True)
    named = ((OF_ONE_SEED.match(test["name"]), test) for test in json.loads(listed.stdout)["tests"])
    return {match[1]: test for match, test in named if match and "command" in test}


def property_of(test, name, default):
    return next((item["value"] for item in test["properties"] if item["name"] == name), default)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(test, seed, log):
    """Returns the exit code; that of a test that takes too long is None."""
    of_seed = lambda text: ITS_SEED.sub(f"seed={seed}", text)
    environment = dict(os.environ)
    environment.update(of_seed(item).split("=", 1) for item in property_of(test, "ENVIRONMENT", []))
    with open(log, "wb") as output:
        process = subprocess.Popen([of_seed(word) for word in test["command"]], stdout=output, stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True)
        try:
            return process.wait(property_of(test, "TIMEOUT", 120))
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process)


class Results:
    """What was seen, kept in a file that is whole at every moment."""

    def __init__(self, path, anew):
        self.path = path
        self.rows = {} if anew or not path.exists() else json.loads(path.read_text(encoding="utf-8"))

    def row(self, name):
        return self.rows.setdefault(name, {"passed": [], "skipped": [], "failed": {}})

    def has(self, name, seed):
        row = self.row(name)
        return seed in row["passed"] or seed in row["skipped"] or str(seed) in row["failed"]

    def save(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")
        new.replace(self.path)

    def table(self):
        lines = ["| row | seeds | passed | skipped | failed | at |", "|---|---|---|---|---|---|"]
        for name, row in self.rows.items():
            passed, skipped, failed = (len(row[key]) for key in ("passed", "skipped", "failed"))
            at = ", ".join(f"{seed} ({how})" for seed, how in row["failed"].items())
            lines.append(f"| {name} | {passed + skipped + failed} | {passed} | {skipped} | {failed} | {at} |")
        return "\n".join(lines)

    def any_failed(self):
        return any(row["failed"] for row in self.rows.values())


def run_once(test, name, seed, out, results, again):
    """Runs a row at a seed, and again when it fails, and notes what it saw."""
    log = out / f"{name}-{seed}.log"
    code = run(test, seed, log)
    row = results.row(name)
    if code in (0, SKIPPED):
        log.unlink()
        row["passed" if code == 0 else "skipped"].append(seed)
    else:
        how = "too long" if code is None else f"exit code {code}"
        print(f"FAIL {name} seed {seed}: {how}, {log}", flush=True)
        passed = sum(run(test, seed, out / f"{name}-{seed}-again{i + 1}.log") == 0 for i in range(again))
        row["failed"][str(seed)] = f"{how}; again {passed} of {again} passed"
    results.save()


def run_all(there, names, arguments, results, out):
    end = time.monotonic() + 60 * arguments.minutes if arguments.minutes else float("inf")
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for name in names:
            if results.has(name, seed):
                continue
            if time.monotonic() > end:
                raise Ended
            run_once(there[name], name, seed, out, results, arguments.again)


def be_ended(*_):
    raise Ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--only", action="append", metavar="NAME", help="of verbs, ucx, mpi ...; several times for several")
    parser.add_argument("--minutes", type=float, help="begin no more after so long")
    parser.add_argument("--again", type=int, default=2, metavar="N", help="how often a test that fails is run again (2)")
    parser.add_argument("--anew", action="store_true", help="forget what was run before")
    parser.add_argument("--table", action="store_true", help="show what was run until now, and run nothing")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="BUILD/shake")
    arguments = parser.parse_args()
    out = arguments.out or Path(arguments.build) / "shake"
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / "results.json", arguments.anew)
    finished = True
    if not arguments.table:
        there = tests_of(arguments.build)
        names = arguments.only or list(there)
        if unknown := [name for name in names if name not in there]:
            sys.exit(f"no {unknown[0]} in {arguments.build}; there are: {', '.join(there)}")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, be_ended)
        try:
            run_all(there, names, arguments, results, out)
        except Ended:
            finished = False
    print(results.table())
    if not finished:
        print("not finished: the same command goes on")
        return UNFINISHED
    return FAILED if results.any_failed() else 0


sys.exit(main())
