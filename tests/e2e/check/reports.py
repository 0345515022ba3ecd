#!/usr/bin/env python3
"""Reports of checks in all their forms, and exit codes: reports.py LEAVER ($ROCEMU: the command)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROCEMU = os.environ["ROCEMU"]
LEAVER = sys.argv[1]
FUNCTION = "make_region_that_stays"
LIMIT_S = 30


def run(*words, environment=None):
    return subprocess.run([ROCEMU, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                          check=False, env={**os.environ, **(environment or {})})


def expect(condition, what, done=None):
    if condition:
        return
    if done is not None:
        print(done.stdout, done.stderr, sep="\n")
    sys.exit(f"FAIL: {what}")


def regions(findings):
    return [finding for finding in findings if finding["objects"][0].startswith("MR ")]


def check_text():
    done = run("run", "--check", "--", LEAVER)
    expect(done.returncode == 66, f"exit code {done.returncode} instead of 66", done)
    expect("rocemu check: leaks" in done.stderr, "no report on standard error", done)
    expect(f"{FUNCTION}  " in done.stderr and "leaver.c:" in done.stderr, "no function, file and line", done)
    expect("rocemu check: 2 findings: leaks 2" in done.stderr, "no summary", done)


def check_json(folder):
    report = folder / "report.json"
    done = run("run", "--check", "--check-report", str(report), "--", LEAVER)
    findings = json.loads(report.read_text())["findings"]
    expect(done.returncode == 66 and len(findings) == 2, "an MR and a PD in the JSON", done)
    region, = regions(findings)
    expect(region["name"] == "leaks" and region["verb"] == "ibv_reg_mr" and region["times"] == 1, "the members", done)
    functions = [frame["function"] for frame in region["backtraces"][0]["frames"]]
    expect(FUNCTION in functions and "main" in functions, f"the backtrace: {functions}", done)


def check_junit(folder):
    report = folder / "report.xml"
    run("run", "--check", "--check-report", str(report), "--", LEAVER)
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    cases = suite.findall("testcase")
    expect(suite.get("failures") == "2" and len(cases) == 2, "two test cases that fail")
    expect(all(case.get("classname") == "rocemu.check.leaks" for case in cases), "their class")
    expect(any(FUNCTION in case.find("failure").text for case in cases), "their text")
    run("run", "--check=-leaks", "--check-report", str(report), "--", LEAVER)
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    expect(suite.get("failures") == "0" and suite.get("tests") == "1", "one that passes without findings")
    expect(suite.get("errors") == "0", "and no error")


def check_program_that_never_ran(folder):
    report = folder / "never.xml"
    done = run("run", "--check", "--check-report", str(report), "--", "/no-such-program")
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    expect(done.returncode == 127 and suite.get("errors") == "1" and suite.find("testcase/error") is not None, "an error", done)
    report = folder / "never.json"
    run("run", "--check", "--check-report", str(report), "--", "/no-such-program")
    expect("error" in json.loads(report.read_text()), "an error in the JSON")


def check_exit_codes():
    for words, code in ((["--check"], 66), (["--check", "--check-exit-code", "7"], 7),
                        (["--check", "--check-exit-code", "0"], 3), (["--check=-leaks"], 3), (["--check=limits"], 3),
                        ([], 3)):
        done = run("run", *words, "--", LEAVER, "3")
        expect(done.returncode == code, f"{words}: exit code {done.returncode} instead of {code}", done)
    done = run("run", "--check=leeks", "--", LEAVER)
    expect(done.returncode == 125 and "leeks" in done.stderr, "an unknown check", done)


def check_suppressions(folder):
    known = folder / "known.txt"
    known.write_text(f"leaks:^{FUNCTION}$   # the MR\nleaks:^main$\n")
    done = run("run", "--check", "--check-suppressions", str(known), "--", LEAVER)
    expect(done.returncode == 0 and "leaks" not in done.stderr, "suppressed", done)


def check_nic_that_is_up(folder):
    name = f"check-{os.getpid()}"
    expect(run("up", "--check", "--name", name).returncode == 0, "up --check")
    try:
        done = run("exec", "--name", name, "--", LEAVER)
        expect(done.returncode == 66, f"exec: exit code {done.returncode} instead of 66", done)
        done = run("findings", "--name", name, "--json")
        expect(done.returncode == 66 and len(json.loads(done.stdout)["findings"]) == 2, "findings has those of exec", done)
        done = run("exec", "--name", name, "--check=-leaks", "--", LEAVER)
        expect(done.returncode == 0, "exec's own options go first", done)
        script = run("env", "--name", name).stdout
        done = subprocess.run(["sh", "-c", script + '"$0"; echo $?; cat "$ROCEMU_CHECK_DIR/findings.jsonl"', LEAVER],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        code, *lines = done.stdout.splitlines()
        expect(code == "0" and len(regions(map(json.loads, lines))) == 2, "env, after what exec has found", done)
        report = folder / "up.xml"
        done = run("findings", "--name", name, "--check-report", str(report))
        expect(done.returncode == 66 and done.stdout.endswith("2 findings: leaks 2\n"), "findings", done)
        expect(f"\n  {FUNCTION}  " in done.stdout and "failures=\"2\"" in report.read_text(), "the text and the report", done)
        done = run("findings", "--name", name, "--check-report", "/no/such/folder.xml")
        expect(done.returncode == 1 and "/no/such/folder.xml" in done.stderr, "a report that cannot be written", done)
        done = run("findings", "--name", name, "--json", "--check-exit-code", "0")
        expect(done.returncode == 0 and len(json.loads(done.stdout)["findings"]) == 2, "findings --json", done)
    finally:
        run("down", "--name", name)


def check_link_in_place_of_findings(folder):
    """The NIC may be another user's, and the program root's."""
    name = f"linked-{os.getpid()}"
    elsewhere = folder / "elsewhere"
    elsewhere.write_text("")
    state_dir = json.loads(run("up", "--check", "--json", "--name", name).stdout)["state_dir"]
    try:
        os.symlink(elsewhere, f"{state_dir}/findings.jsonl")
        done = run("exec", "--name", name, "--", LEAVER)
        expect(done.returncode == 66 and "cannot add the findings" in done.stderr, "a link is told of", done)
        subprocess.run(["sh", "-c", run("env", "--name", name).stdout + '"$0"', LEAVER], stderr=subprocess.DEVNULL,
                       timeout=LIMIT_S, check=False)
        expect(elsewhere.read_text() == "", "a link is followed", done)
    finally:
        run("down", "--name", name)


def check_nic_without_checks():
    name = f"unchecked-{os.getpid()}"
    expect(run("findings", "--name", name).returncode == 3, "no NIC")
    expect(run("up", "--name", name).returncode == 0, "up")
    try:
        done = run("findings", "--name", name)
        expect(done.returncode == 1 and "without --check" in done.stderr, "nothing was looked for", done)
    finally:
        run("down", "--name", name)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_text()
        check_json(folder)
        check_junit(folder)
        check_program_that_never_ran(folder)
        check_exit_codes()
        check_suppressions(folder)
        check_nic_that_is_up(folder)
        check_link_in_place_of_findings(folder)
    check_nic_without_checks()


main()
