#!/usr/bin/env python3
"""Workflows and actions say what is there: scripts that are called exist, and inputs that are given are the action's. A
workflow that is called asks for no right that its caller lacks. Where actionlint is in PATH it looks at the workflows, too."""
import pathlib
import re
import shutil
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("SKIP: python3-yaml is missing")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def jobs_and_actions():
    """(file, steps) of each."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            if "uses" in job:
                yield file, [{"uses": job["uses"]}]
            else:
                assert "timeout-minutes" in job, f"{file}: a job without a time limit"
                yield file, job["steps"]
    for file in (ROOT / "action.yml", ROOT / "action/finish/action.yml"):
        yield file, yaml.safe_load(file.read_text())["runs"]["steps"]


def faults_of(step):
    for script in re.findall(r"(?:\./|GITHUB_ACTION_PATH/)([\w./-]+\.sh)", step.get("run", "")):
        if not any((ROOT / folder / script).is_file() for folder in ("", "action/finish")):
            yield f"there is no {script}"
    if re.search(r"\$\{\{", step.get("run", "")):
        yield "an expression in a script, which may be code: hand it over by a variable"
    target = step.get("uses", "")
    if target.endswith(".yml"):
        if not (ROOT / target).is_file():
            yield f"there is no {target}"
    elif target.startswith("./"):
        action = yaml.safe_load((ROOT / target / "action.yml").read_text())
        for name in step.get("with", {}).keys() - action["inputs"].keys():
            yield f"{target} has no input {name}"


RIGHTS = ("none", "read", "write")


def excessive_rights():
    """Of jobs of called workflows: such a run ends before its first job, even if that job's condition leaves it out."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        caller = yaml.safe_load(file.read_text())
        for job in caller["jobs"].values():
            if not job.get("uses", "").endswith(".yml"):
                continue
            has = job.get("permissions", caller["permissions"])
            called = yaml.safe_load((ROOT / job["uses"]).read_text())
            for name, inner in called["jobs"].items():
                for scope, right in inner.get("permissions", called["permissions"]).items():
                    if RIGHTS.index(right) > RIGHTS.index(has.get(scope, "none")):
                        yield f"{file.relative_to(ROOT)}: {job['uses']}'s job {name} asks for {scope}: {right}"


faults = [f"{file.relative_to(ROOT)}: {fault}" for file, steps in jobs_and_actions() for step in steps
          for fault in faults_of(step)]
faults += excessive_rights()
print(*faults, sep="\n")
if shutil.which("actionlint"):
    faults += ["actionlint"] * subprocess.run(["actionlint"], cwd=ROOT, check=False).returncode
sys.exit(1 if faults else 0)
