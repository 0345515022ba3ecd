#!/usr/bin/python3 -B
"""in_a_lab.py [--user] LEAVER: checks and faults of a lab's hosts (`rocemu lab up --check --fault`). ROCEMU: the command."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [f"{os.path.dirname(os.path.abspath(__file__))}/../{folder}" for folder in ("lab", "tools")]
from lab_hosts import LIMIT_SECONDS, Lab, need, words_as_user  # noqa: E402
from program_cases import ROCEMU, fail  # noqa: E402

FOUND_STATUS = 66
FAULT = "h2 call-fails call=reg-mr errno=ENOSPC times=1"


def run(lab, host, *words):
    done = subprocess.run([ROCEMU, "lab", "exec", "--name", lab.name, *words[:-1], host, "--", words[-1]], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False)
    print(f"{host}: {done.returncode}\n{done.stdout}")
    return done


def check_finding(lab, leaver):
    """A host's program has its finding in the report and in its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = run(lab, "h1", "--check-report", str(report), leaver)
        names = [finding["name"] for finding in json.loads(report.read_text())["findings"]]
    if done.returncode != FOUND_STATUS or names != ["leaks", "leaks"]:
        fail(f"exit code {done.returncode} and {names} instead of {FOUND_STATUS} and two leaks")


def check_fault(lab, leaver):
    """The fault is its host's alone, once; the exit code is the program's own when that is asked for."""
    done = run(lab, "h2", "--check-exit-code", "0", leaver)
    if done.returncode != 1 or "No space left on device" not in done.stdout:
        fail("no memory could be registered on h2, and its program was not told")
    if run(lab, "h2", "--check-exit-code", "0", leaver).returncode != 0:
        fail("memory cannot be registered a second time")


def main():
    leaver, = words_as_user(__file__)
    need(ip="iproute2")
    with Lab("checked", "--check", "--fault", FAULT) as lab:
        check_finding(lab, leaver)
        check_fault(lab, leaver)
        lab.down()


main()
