import shutil

import pytest


def pytest_runtest_setup(item):
    """A test names the programs that it needs by @pytest.mark.programs("rping")."""
    for marker in item.iter_markers("programs"):
        missing = [program for program in marker.args if shutil.which(program) is None]
        if missing:
            pytest.skip(f"missing: {', '.join(missing)}")


def pytest_configure(config):
    config.addinivalue_line("markers", "programs(*names): programs that the test needs")
