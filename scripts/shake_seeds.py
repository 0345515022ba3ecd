#!/usr/bin/python3 -B
"""Runs the end-to-end tests over NICs that are shaken (docs/shake.md) at many seeds, and says which failed at which: those
of tests/e2e/shake that ctest runs at three, by what stands before their seed.

    scripts/shake_seeds.py --seeds 100                      # all of them, build/release
    scripts/shake_seeds.py --seeds 20 --only ucx --only mpi
    scripts/shake_seeds.py --only cm --first 17 --seeds 1   # one again

What a test prints when it fails is kept in OUT/NAME-SEED.log. The exit code is 0 when nothing failed."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--only", action="append", metavar="NAME", help="of verbs, ucx, mpi ...; several times for several")
    parser.add_argument("--minutes", type=float, help="begin no more after so long")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="BUILD/shake")
    arguments = parser.parse_args()
    out = arguments.out or Path(arguments.build) / "shake"
    out.mkdir(parents=True, exist_ok=True)
    there = tests_of(arguments.build)
    names = arguments.only or list(there)
    if unknown := [name for name in names if name not in there]:
        sys.exit(f"no {unknown[0]} in {arguments.build}; there are: {', '.join(there)}")

    end = time.monotonic() + 60 * arguments.minutes if arguments.minutes else float("inf")
    results = {name: {"passed": 0, "skipped": 0, "failed": []} for name in names}
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for name in names:
            if time.monotonic() > end:
                break
            log = out / f"{name}-{seed}.log"
            code = run(there[name], seed, log)
            result = results[name]
            if code == 0:
                result["passed"] += 1
            elif code == SKIPPED:
                result["skipped"] += 1
            else:
                result["failed"].append(seed)
                print(f"FAIL {name} seed {seed}: {'too long' if code is None else f'exit code {code}'}, {log}", flush=True)
            if code in (0, SKIPPED):
                log.unlink()
        # After each seed, so that what was seen is there when the run is ended.
        (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for name, result in results.items():
        failed = f", failed {len(result['failed'])} at {result['failed']}" if result["failed"] else ""
        print(f"{name}: passed {result['passed']}, skipped {result['skipped']}{failed}")
    return 1 if any(result["failed"] for result in results.values()) else 0


sys.exit(main())
