#!/usr/bin/env python3
"""Runs a program of the corpus under the checker, wrong and right.

    run.py --source FILE.c PROGRAM          ($ROCEMU: the command)

Wrong: the findings are those of the marked lines ("// <-- NAME") and no others, each with its function and line in a
backtrace, and the exit status is 66. Right: none, and 0, over a NIC that is shaken as well. A program in shaken.txt makes a
mistake that no check can see, and has to fail over a NIC that is shaken as it says there.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOUND_STATUS = 66
OWN_FAILURE_STATUS = 1  # of must() in pair.c
LIMIT_S = 60
SHAKE = "-limits,seed=1"  # one program is about limits: it asks the device for its own


def fail(text):
    sys.exit(f"FAIL: {text}")


def marks_of(source):
    """(name, function, line) of each marked line."""
    marks = []
    function = None
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.match(r"[a-z][\w ]*?[ *](\w+)\(.*\) \{$", line):
            function = match[1]
        if match := re.search(r"// <-- ([a-z-]+)$", line):
            marks.append((match[1], function, number))
    return marks


def shake_of(name):
    """What makes the program fail whose mistake no check sees, and what it says then; None for all others."""
    rows = (line.split(maxsplit=2) for line in (HERE / "shaken.txt").read_text().splitlines())
    return next((row[1:] for row in rows if row[0] == name), None)


class Run:
    """One run of the program: its exit status, what it wrote, and the findings."""

    def __init__(self, program, how, *options):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            command = [os.environ["ROCEMU"], "run", "--check", "--check-report", str(report), *options, "--", program, how]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=LIMIT_S, check=False)
            self.status = done.returncode
            self.output = done.stdout
            self.findings = json.loads(report.read_text())["findings"] if report.exists() else []
        self.names = {finding["name"] for finding in self.findings}

    def shows(self, name, function, file, line):
        return any(frame["function"] == function and pathlib.Path(frame.get("file", "")).name == file
                   and frame.get("line") == line
                   for finding in self.findings if finding["name"] == name
                   for backtrace in finding["backtraces"] for frame in backtrace["frames"])


def check_wrong(run, marks, file):
    print(run.output)
    wanted = {name for name, _, _ in marks}
    if missing := wanted - run.names:
        fail(f"wrong, and not found: {', '.join(sorted(missing))}")
    if others := run.names - wanted:
        fail(f"found besides: {', '.join(sorted(others))}")
    for name, function, line in marks:
        if not run.shows(name, function, file, line):
            fail(f"no backtrace of {name} has {function}() at {file}:{line}")
    if run.status != FOUND_STATUS:
        fail(f"exit status {run.status} instead of {FOUND_STATUS}")


def check_right(run, where=""):
    if run.findings or run.status != 0:
        print(run.output)
    if run.findings:
        fail(f"right{where}, and found: {', '.join(sorted(run.names))}")
    if run.status != 0:
        fail(f"right{where}, and exit status {run.status}")


def check_shaken(program, wrong, shake, why):
    """No check sees the mistake; its program fails over a NIC that is shaken so, and the right one does not."""
    if wrong.findings:
        print(wrong.output)
        fail(f"found, against what shaken.txt says: {', '.join(sorted(wrong.names))}")
    check_right(Run(program, "right", f"--shake={shake}"), f" under --shake={shake}")
    shaken = Run(program, "wrong", f"--shake={shake}")
    print(shaken.output)
    if shaken.status != OWN_FAILURE_STATUS or why not in shaken.output:
        fail(f"wrong, and does not say why it fails under --shake={shake}: exit status {shaken.status}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("program")
    options = parser.parse_args()
    marks = marks_of(options.source)
    if not marks:
        fail("no line is marked")
    check_right(Run(options.program, "right"))
    check_right(Run(options.program, "right", f"--shake={SHAKE}"), f" under --shake={SHAKE}")
    wrong = Run(options.program, "wrong")
    if shake := shake_of(options.source.stem):
        return check_shaken(options.program, wrong, *shake)
    check_wrong(wrong, marks, options.source.name)


main()
