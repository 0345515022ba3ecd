"""Runs every example of docs/python.md, so that none of them can rot.

    python      a program; one with tests in it is run by pytest
    sh          the lines of a shell
    pytest      what pytest prints of the example before it: each line must be there, as a pattern
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rocemu

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 120
# What not every build has had: by the command's name, and how examples use it.
NEEDED = {"fault": "nic.fault(", "run --check": "check="}


def blocks():
    text = PAGE.read_text()
    found = [(f"line{text[:block.start()].count(chr(10)) + 1}-{block[1]}", block[1], block[2])
             for block in BLOCK.finditer(text)]
    assert text.count("```") == 2 * len(found), "a block that does not end"
    return found


def run(command, folder):
    folders = [os.path.dirname(os.environ["ROCEMU"]), os.path.dirname(sys.executable), os.environ["PATH"]]
    variables = {**os.environ, "PATH": os.pathsep.join(folders)}
    return subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False)


BLOCKS = blocks()


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=[name for name, _, _ in BLOCKS])
def test_example(number, tmp_path):
    _, language, text = BLOCKS[number]
    for feature, use in NEEDED.items():
        if use in text and not rocemu.has_command(feature):
            pytest.skip(f"this rocemu has no {feature}")
    if language == "sh":
        build = os.environ.get("ROCEMU_BUILD", "build/release")
        if "cmake --install" in text and not os.access(build, os.W_OK):
            pytest.skip(f"cmake --install writes to {build}, and this user may not")
        ended = run(["bash", "-euo", "pipefail", "-c", text.replace("build/release", build)], PAGE.parents[1])
    elif language == "python" and "def test_" in text:
        expected = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "", "")
        ended = run_tests(text, tmp_path)
        if expected[1] == "pytest":
            assert ended.returncode == 1, ended.stdout
            for line in filter(None, map(str.strip, expected[2].splitlines())):
                assert re.search(line, ended.stdout), f"{line!r} is not in\n{ended.stdout}"
            return
    elif language == "python":
        ended = run([sys.executable, "-c", text], tmp_path)
    elif language == "pytest":
        assert BLOCKS[number - 1][1] == "python" and "def test_" in BLOCKS[number - 1][2]
        return  # is compared with the example before it
    else:
        pytest.fail(f"nobody knows how to run {language!r}")
    assert ended.returncode == 0, ended.stdout


def run_tests(text, folder):
    (folder / "test_example.py").write_text(text)
    return run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rsf", "test_example.py"], folder)
