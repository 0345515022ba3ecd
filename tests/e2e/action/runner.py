"""The machine that the steps of a workflow run on, as far as a composite action needs it: the user "runner" with a home
and a folder for temporary files, the files that a step hands things on by, and expressions in action.yml."""
import os
import pathlib
import pwd
import re
import subprocess

import yaml

LIMIT_S = 100
UID = 1001
BASH = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"]  # "shell: bash" of a workflow


class Runner:
    """Steps of one job. `user` is "runner", "root", or "confined": a runner that no program can give more rights. Started
    by an ordinary user, it is that one who runs them."""

    def __init__(self, folder, user, variables=None):
        self.folder = folder
        self.user = user
        self.home, self.temp, self.workspace = (folder / name for name in ("home", "temp", "work"))
        for each in (self.home, self.temp, self.workspace):
            each.mkdir()
        self.summary = self._file("summary")
        self.variables = {"HOME": str(self.home), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          "LANG": "C.UTF-8", "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.temp),
                          "GITHUB_WORKSPACE": str(self.workspace), "GITHUB_STEP_SUMMARY": str(self.summary),
                          **(variables or {})}
        self.steps = 0
        for each in (self.home, self.temp, self.workspace, self.summary):
            self._give(each)

    def _give(self, path):
        if self.user != "root" and os.geteuid() == 0:
            os.chown(path, UID, UID)

    def _file(self, name):
        path = self.folder / name
        path.touch()
        self._give(path)
        return path

    def _become(self):
        if self.user == "root":
            return []
        become = ["--reuid", str(UID), "--regid", str(UID), "--clear-groups"] if os.geteuid() == 0 else []
        return ["setpriv", *become, *(["--no-new-privs"] if self.user == "confined" else []), "--"]

    def run(self, script, expect=0, **variables):
        """A step with `run:`. Its environment is what the runner has and what steps before have handed on, no more.
        Returns what it printed, and its outputs."""
        self.steps += 1
        files = {name: self._file(f"{name}{self.steps}") for name in ("env", "path", "output")}
        environment = {**self.variables, **{f"GITHUB_{name.upper()}": str(path) for name, path in files.items()},
                       **variables}
        done = subprocess.run([*self._become(), *BASH, "-c", script], cwd=self.workspace, env=environment, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        assert done.returncode == expect, f"exit code {done.returncode} instead of {expect}:\n{script}\n{done.stdout}"
        self.variables.update(pairs(files["env"]))
        for line in files["path"].read_text().splitlines():
            self.variables["PATH"] = f"{line}:{self.variables['PATH']}"
        return done.stdout, pairs(files["output"])

    def uses(self, folder, github=None, expect=0, **inputs):
        """A step with `uses:`, of the composite action in `folder`. Returns what it printed, and its outputs."""
        action = yaml.safe_load((folder / "action.yml").read_text())
        contexts = {f"github.{key}": value for key, value in (github or {}).items()}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert not given.keys() - action["inputs"].keys(), f"no such inputs: {given}"
        for name, about in action["inputs"].items():
            contexts[f"inputs.{name}"] = given.get(name, evaluate(about["default"], contexts))
        assert action["runs"]["using"] == "composite"
        printed = ""
        for step in action["runs"]["steps"]:
            assert step.keys() <= {"id", "shell", "env", "run"} and step["shell"] == "bash", "beyond this runner"
            variables = {name: evaluate(value, contexts) for name, value in step["env"].items()}
            text, outputs = self.run(evaluate(step["run"], contexts), expect, GITHUB_ACTION_PATH=str(folder), **variables)
            printed += text
            contexts.update({f"steps.{step['id']}.outputs.{name}": value for name, value in outputs.items()})
        return printed, {name: evaluate(about["value"], contexts) for name, about in action["outputs"].items()}


def pairs(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def evaluate(text, contexts):
    """Expressions of names with || between; a name without a value is empty."""
    def value(match):
        names = [name.strip() for name in match[1].split("||")]
        return next((contexts[name] for name in names if contexts.get(name)), "")
    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def let_runner_use_sudo(folder):
    """What a hosted runner has: the user, who may do anything by sudo. In this process's mount namespace, which must be its
    own."""
    try:
        pwd.getpwuid(UID)
        raise SystemExit(f"SKIP: there is a user {UID} here already")
    except KeyError:
        pass
    for path, text in (("/etc/passwd", f"runner:*:{UID}:{UID}::{folder}:/bin/sh\n"),
                       ("/etc/sudoers", f"\n#{UID} ALL=(ALL) NOPASSWD: ALL\n")):
        changed = folder / pathlib.Path(path).name
        changed.write_text(pathlib.Path(path).read_text() + text)
        changed.chmod(0o440 if "sudoers" in path else 0o644)
        subprocess.run(["mount", "--bind", str(changed), path], check=True)
