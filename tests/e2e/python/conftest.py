"""What the tests of the Python package share. They are run by ctest (python.cmake), or by hand:

    PYTHONPATH=build/release/python python3 -m pytest tests/e2e/python
"""
import shutil

import pytest

import rocemu

pytest_plugins = ["pytester"]


@pytest.fixture
def nic():
    with rocemu.Nic() as nic:
        yield nic


@pytest.fixture
def needs():
    """Skips the test when a program is missing: needs("rping")."""
    def check(*programs):
        missing = [program for program in programs if shutil.which(program) is None]
        if missing:
            pytest.skip(f"{', '.join(missing)} missing")
    return check


def pytest_sessionfinish(session):
    """All skipped is no success: ctest knows 77."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return  # in one of pytest-xdist's processes
    reports = reporter.stats
    if reports.get("skipped") and not reports.get("passed") and session.exitstatus == 0:
        session.exitstatus = 77
