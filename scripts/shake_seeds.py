#!/usr/bin/python3 -B
"""Runs end-to-end tests over NICs that are shaken (docs/shake.md), each at many seeds, and says which failed at which.

    scripts/shake_seeds.py --seeds 100                      # all parts, build/release
    scripts/shake_seeds.py --seeds 20 --only ucx --only mpi
    scripts/shake_seeds.py --tests '^e2e/cm/rstream$' --first 17 --seeds 1
    scripts/shake_seeds.py --shake=-late-acks --seeds 10

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
WRAPPER = ROOT / "tests/e2e/shake/shaken_rocemu.sh"
PARTS = {
    "perftest": r"^e2e/matrix/(send|write|read|atomic)$",
    "pingpong": r"^e2e/matrix/pingpong$",
    "pyverbs": r"^e2e/pyverbs$",
    "verbs": r"^e2e/verbs$",
    "verb_table": r"^e2e/verb_table$",
    "bytes": r"^e2e/verify_bytes-ipv6-to-itself$",
    "stress": r"^e2e/stress$",
    "ucx": r"^e2e/ucx:",
    "mpi": r"^e2e/mpi$",
    "rsockets": r"^e2e/cm/(rstream|riostream|rcopy|rsockets)$",
    "cm": r"^e2e/cm/(rping-ipv4|ucmatose|udaddy|mckey|rdma_client|cmtime|fi_pingpong:msg|fio:write)$",
}
SKIPPED = 77


def tests_of(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True)
    return [test for test in json.loads(listed.stdout)["tests"] if "command" in test]


def property_of(test, name, default=None):
    return next((item["value"] for item in test["properties"] if item["name"] == name), default)


def run(test, rocemu, shake, log):
    """Returns the exit code; that of a test that takes too long is None."""
    environment = dict(os.environ, ROCEMU_TEST_COMMAND=rocemu, ROCEMU_TEST_SHAKE=shake)
    environment.update(item.split("=", 1) for item in property_of(test, "ENVIRONMENT", []))
    environment["ROCEMU"] = str(WRAPPER)
    command = [str(WRAPPER) if word == rocemu else word for word in test["command"]]
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
        try:
            return process.wait(3 * float(property_of(test, "TIMEOUT", 120)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"), metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--shake", default="all", metavar="NAMES", help="as of rocemu run, without a seed")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; several times for several")
    parser.add_argument("--tests", metavar="REGEX", help="other tests instead")
    parser.add_argument("--minutes", type=float, help="begin no more after so long")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="BUILD/shake")
    arguments = parser.parse_args()
    out = arguments.out or Path(arguments.build) / "shake"
    out.mkdir(parents=True, exist_ok=True)
    rocemu = str((Path(arguments.build) / "bin/rocemu").resolve())
    wanted = [arguments.tests] if arguments.tests else [PARTS[part] for part in arguments.only or PARTS]
    chosen = [test for test in tests_of(arguments.build) if any(re.search(regex, test["name"]) for regex in wanted)]
    if not chosen:
        sys.exit("no such tests in " + arguments.build)

    end = time.monotonic() + 60 * arguments.minutes if arguments.minutes else float("inf")
    results = {test["name"]: {"passed": 0, "skipped": 0, "failed": []} for test in chosen}
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for test in chosen:
            if time.monotonic() > end:
                break
            name = test["name"].removeprefix("e2e/")
            log = out / f"{name.replace('/', '-')}-{seed}.log"
            code = run(test, rocemu, f"{arguments.shake},seed={seed}", log)
            result = results[test["name"]]
            if code == 0:
                result["passed"] += 1
            elif code == SKIPPED:
                result["skipped"] += 1
            else:
                result["failed"].append(seed)
                print(f"FAIL {name} seed {seed}: {'too long' if code is None else f'exit code {code}'}, {log}", flush=True)
            if code in (0, SKIPPED):
                log.unlink()
    for name, result in results.items():
        failed = f", failed {len(result['failed'])} at {result['failed']}" if result["failed"] else ""
        print(f"{name}: passed {result['passed']}, skipped {result['skipped']}{failed}")
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 1 if any(result["failed"] for result in results.values()) else 0


sys.exit(main())
