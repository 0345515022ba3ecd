"""The package is typed, for the oldest Python that it supports, and so are programs that use it."""
import ast
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

import rocemu

SOURCE = Path(rocemu.__file__).resolve().parents[1]
OLDEST = (3, 9)

USE = """
import rocemu

with rocemu.Nic(devices=2) as nic:
    frames: int = nic.status()["rocemu0"].counters.tx_frames
    text: str = nic.run("true").stdout
    wrong: int = nic.run("true").stdout
"""


def test_the_syntax_is_of_the_oldest_python():
    for file in [*SOURCE.glob("*.py"), *(SOURCE / "rocemu").glob("*.py")]:
        ast.parse(file.read_text(), feature_version=OLDEST)


def mypy(*arguments, **options):
    if shutil.which("mypy") is None:
        pytest.skip("mypy is missing (Debian package mypy)")
    run = partial(subprocess.run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    ended = run(["mypy", "--cache-dir=/dev/null", "--python-version", f"{OLDEST[0]}.{OLDEST[1]}", *arguments])
    if "(must be" in ended.stdout:  # newer mypy knows that Python no more: then its own oldest
        ended = run(["mypy", "--cache-dir=/dev/null", "--python-version", re.search(r"must be (\d+\.\d+)", ended.stdout)[1],
                     *arguments])
    return ended


def test_mypy_strict():
    ended = mypy("--strict", "--no-incremental", "rocemu", "build_wheel.py", cwd=SOURCE)
    assert ended.returncode == 0, ended.stdout


def test_types_reach_those_who_use_it(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    ended = mypy("--strict", "use.py", cwd=tmp_path, env={"MYPYPATH": str(SOURCE), "PATH": "/usr/bin:/bin"})
    assert ended.stdout.count("error:") == 1 and "use.py:7" in ended.stdout, ended.stdout
