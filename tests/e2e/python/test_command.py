"""How the package finds the rocemu command, and what it says of one that it cannot use."""
import os
import subprocess
import sys

import pytest

import rocemu

SHOW = "import rocemu; print(rocemu.find_command())"
USE = """
import rocemu
try:
    rocemu.Nic()
except rocemu.CommandNotFound as error:
    print(error)
"""


def python(script, **environment):
    variables = {name: value for name, value in os.environ.items() if name not in ("ROCEMU", "PATH")}
    variables.update({"PATH": "/usr/bin:/bin", **environment})
    return subprocess.run([sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def fake(folder, text):
    path = folder / "rocemu"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_variable_goes_first(tmp_path):
    command = fake(tmp_path, "exit 1")
    assert python(SHOW, ROCEMU=command) == command
    assert "which cannot be run" in python(USE, ROCEMU=str(tmp_path / "nothing"))


def test_beside_the_package(tmp_path):
    for layout in ("lib/python3/dist-packages", "lib/python3.11/site-packages", "python"):
        prefix = tmp_path / layout.replace("/", "-")
        folder = prefix / layout
        folder.mkdir(parents=True)
        (folder / "rocemu").symlink_to(os.path.dirname(os.path.realpath(rocemu.__file__)))
        (prefix / "bin").mkdir()
        command = fake(prefix / "bin", "exit 1")
        assert python(SHOW, PYTHONPATH=str(folder)) == command


def test_on_path_when_it_is_not_beside(tmp_path):
    apart = tmp_path / "apart"
    apart.mkdir()
    (apart / "rocemu").symlink_to(os.path.dirname(os.path.realpath(rocemu.__file__)))
    command = fake(tmp_path, "exit 1")
    assert python(SHOW, PYTHONPATH=str(apart), PATH=f"{tmp_path}:/usr/bin") == command
    assert "there is no rocemu command" in python(USE, PYTHONPATH=str(apart), PATH="/nowhere")


@pytest.mark.parametrize("does,said", [
    ("echo '{\"json_version\": 99}'", "speaks version 99 of its JSON, and this package 1"),
    ("echo '{\"version\": \"0.0.1\"}'", "speaks version 0 of its JSON"),
    ("echo sorry >&2; exit 1", "sorry"),
    ("echo no JSON", "does not answer as the rocemu command"),
])
def test_a_command_of_another_kind(tmp_path, does, said):
    assert said in python(USE, ROCEMU=fake(tmp_path, does))
