"""Tests in Python by pyverbs, and rdma-core's own pyverbs tests, on a NIC for each."""
import gzip
import sys
from pathlib import Path

import pytest

import rocemu

pytest.importorskip("pyverbs", reason="missing: Debian package python3-pyverbs")

# A program of its own: only what is started on a NIC sees its devices.
REGISTERS = """
import time
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
IBV_ACCESS_LOCAL_WRITE = 1  # of verbs.h
with Context(name="rocemu1") as context, PD(context) as pd:
    regions = [MR(pd, 4096, IBV_ACCESS_LOCAL_WRITE) for _ in range(5)]
    print("registered", flush=True)
    time.sleep(1000)
"""

SUITE = Path("/usr/share/doc/rdma-core/tests")


def test_what_a_program_holds_is_seen_and_gone_with_it(rocemu_nic):
    nic = rocemu_nic()
    with nic.start([sys.executable, "-c", REGISTERS]) as program:
        program.wait_for_output("registered")
        objects = nic.wait_until(lambda s: s["rocemu1"].objects if s["rocemu1"].objects.mrs == 5 else None)
        assert (objects.contexts, objects.pds, objects.qps) == (1, 1, 0)
    nic.wait_until(lambda s: s["rocemu1"].objects == rocemu.Objects(), what="nothing to be left")


@pytest.mark.skipif(not SUITE.is_dir(), reason="missing: rdma-core's tests")
@pytest.mark.parametrize("module", ["test_pd", "test_addr", "test_qp.QPTest"])
def test_rdma_cores_own_tests_leave_nothing_behind(rocemu_nic, tmp_path, module):
    folder = tmp_path / "tests"
    folder.mkdir()
    for source in SUITE.iterdir():
        opener = gzip.open if source.suffix == ".gz" else open
        with opener(source, "rb") as packed:
            (folder / source.name.replace(".gz", "")).write_bytes(packed.read())
    nic = rocemu_nic(devices=1)
    result = nic.run([sys.executable, folder / "run_tests.py", "--dev", "rocemu0", "-k", f"tests.{module}."],
                     cwd=tmp_path, timeout=120)
    assert "OK" in result.stderr
    assert nic.status()["rocemu0"].objects == rocemu.Objects()
