#!/usr/bin/env python3
"""What sim_scenarios says and leaves behind when a scenario fails.

  failing_scenario.py SIM_SCENARIOS
"""
import os
import subprocess
import sys
import tempfile


def check(condition, what):
    if not condition:
        sys.exit(f"failing_scenario.py: {what}")


def run(folder, *words):
    return subprocess.run([os.path.abspath(sys.argv[1]), *words], cwd=folder, capture_output=True, text=True, check=False)


def check_ladder(folder, file, seed):
    with open(os.path.join(folder, file), encoding="utf-8") as page:
        text = page.read()
    check(f"sim_scenarios --seed {seed}" in text and "packet" in text, f"{file} is no ladder of seed {seed}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        failed = run(folder, "--scenarios", "4", "--seed", "5", "--jobs", "2", "--fail-at", "7")
        check(failed.returncode == 1, f"it ended with {failed.returncode}")
        check("seed 7: " in failed.stdout and "--seed 7 --trace" in failed.stdout, failed.stdout)
        check("what happened: seed-7.html\n" in failed.stdout, failed.stdout)
        check(os.listdir(folder) == ["seed-7.html"], f"it left {os.listdir(folder)}")
        check_ladder(folder, "seed-7.html", 7)

        failed = run(folder, "--seed", "3", "--fail-at", "3", "--ladder", "mine.html")
        check(failed.returncode == 1 and "what happened: mine.html\n" in failed.stdout, failed.stdout)
        check_ladder(folder, "mine.html", 3)

        whole = run(folder, "--scenarios", "2", "--seed", "3", "--fail-at", "9")
        check(whole.returncode == 0, f"{whole.stdout}{whole.stderr}")
        check(sorted(os.listdir(folder)) == ["mine.html", "seed-7.html"], f"it left {os.listdir(folder)}")
        check(run(folder, "--fail-at", "x").returncode == 2, "no number is taken")


main()
