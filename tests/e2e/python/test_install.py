"""The package where it is installed: by CMake under a prefix, and by pip without a network."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rocemu

SOURCE = Path(rocemu.__file__).resolve().parents[1]
VERSION = re.search(r"^project\(rocemu VERSION ([0-9.]+)", (SOURCE.parent / "CMakeLists.txt").read_text(),
                    re.MULTILINE)[1]
TEST = "def test_nic(rocemu_nic):\n    assert rocemu_nic(devices=1).status().devices\n"


def works_from(folder, tmp_path, environment):
    """The package is found with its plugin, its types and its version."""
    variables = {**{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)},
                 "PYTHONPATH": str(folder), **environment}
    show = ("import importlib.metadata as m, rocemu; print(m.version('rocemu'), rocemu.__file__)")
    shown = subprocess.run([sys.executable, "-c", show], env=variables, stdout=subprocess.PIPE, text=True,
                           check=True).stdout.split()
    assert shown == [VERSION, str(folder / "rocemu/__init__.py")]
    assert (folder / "rocemu/py.typed").is_file()
    (tmp_path / "test_one.py").write_text(TEST)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py"],
                   cwd=tmp_path, env=variables, check=True)


def pip(*arguments):
    """pip with no way to any network: no index, and where it can be so no interface either."""
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        alone = []
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("pip is missing (Debian package python3-pip)")
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([*alone, sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir",
                    *arguments], env=variables, check=True)


def test_pip_needs_no_network(tmp_path):
    pip("install", "--no-index", "--target", str(tmp_path / "there"), str(SOURCE))
    works_from(tmp_path / "there", tmp_path, {})


def test_what_cmake_installs(tmp_path):
    build = Path(os.environ.get("ROCEMU_BUILD", ""))
    script = build / "python" / "cmake_install.cmake"
    if not script.is_file():
        pytest.skip("$ROCEMU_BUILD names no build folder")
    subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={tmp_path}", "-P", str(script)], check=True,
                   stdout=subprocess.DEVNULL)
    works_from(tmp_path / "lib/python3/dist-packages", tmp_path, {})


def test_an_editable_installation_is_the_source(tmp_path):
    sys.path.insert(0, str(SOURCE))
    try:
        import build_wheel  # pylint: disable=import-outside-toplevel,import-error
        name = build_wheel.build_editable(str(tmp_path))
    finally:
        sys.path.remove(str(SOURCE))
    listing = subprocess.run([sys.executable, "-m", "zipfile", "-l", str(tmp_path / name)],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "rocemu.pth" in listing and "entry_points.txt" in listing
