"""What the checker finds, by the package. How findings are handed on is tested with a command that stands in for
one with --check; the last tests are over a real one."""
import json
import os
import stat

import pytest

import rocemu
from rocemu._findings import read

FINDING = {"name": "leaks", "sentence": "An MR is left.", "why": "It costs.", "advice": "Deregister it.",
           "verb": "ibv_reg_mr", "program": "/bin/x", "process": 7, "thread": 8, "objects": ["MR 1"],
           "backtraces": [{"label": "made here", "thread": 8, "frames": [
               {"function": "main", "file": "x.c", "line": 3, "module": "/bin/x", "offset": 16},
               {"function": "", "module": "/lib/y", "offset": 255}]}]}

# As `rocemu run --check`: a folder for findings, and variables that tell programs of it.
STAND_IN = """#!/bin/bash
real={real}
[[ $1 == run ]] || exec "$real" "$@"
shift
options=()
for word in "$@"; do
  if [[ $word == --check* ]]; then
    ROCEMU_CHECK_DIR=$(mktemp -d)
    export ROCEMU_CHECK_DIR ROCEMU_CHECK=${{word#--check}}
  else
    options+=("$word")
  fi
done
exec "$real" run "${{options[@]}}"
"""


@pytest.fixture
def checking(tmp_path, monkeypatch):
    """A command that takes --check, for the tests of suites of their own."""
    path = tmp_path / "rocemu"
    path.write_text(STAND_IN.format(real=rocemu.find_command()))
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("ROCEMU", str(path))
    return path


def test_lines_become_findings(tmp_path):
    assert read(tmp_path) == []
    other = {**FINDING, "name": "limits", "backtraces": [], "of the future": 1}
    again = {**FINDING, "process": 9}
    lines = [json.dumps(FINDING), "[1]", json.dumps(other), json.dumps(again), json.dumps(FINDING)[:-20]]
    (tmp_path / "findings.jsonl").write_text("\n".join(lines))
    first, second = read(tmp_path)
    assert (first.name, first.process, first.times, first.objects) == ("leaks", 7, 2, ("MR 1",))
    assert first.backtraces[0].frames[0] == rocemu.Frame("main", "x.c", 3, "/bin/x", 16)
    assert (second.name, second.times) == ("limits", 1)
    text = str(first)
    assert "#0 main  x.c:3" in text and "#1 ?  /lib/y+0xff" in text and "To do: Deregister it." in text


SUITE = '''
    import json

    FINDING = json.dumps({finding!r})
    SAY = ["sh", "-c", 'cat >> "$ROCEMU_CHECK_DIR/findings.jsonl"']

    def test_wrong(rocemu_nic):
        rocemu_nic().run(SAY, input=FINDING)

    def test_right(rocemu_nic):
        rocemu_nic().run(["sh", "-c", 'test "$ROCEMU_CHECK" = "=leaks"'])

    def test_expects_it(rocemu_nic):
        nic = rocemu_nic()
        nic.run(SAY, input=FINDING)
        assert [finding.name for finding in nic.take_findings()] == ["leaks"]
        assert nic.findings() == []

    AT_THE_END = """
    trap 'echo "$FINDING" >> "$ROCEMU_CHECK_DIR/findings.jsonl"; exit' TERM
    echo ready
    while true; do sleep 0.01; done
    """

    def test_wrong_at_the_end(rocemu_nic):
        program = rocemu_nic().start(["bash", "-c", AT_THE_END], env={{"FINDING": FINDING}})
        program.wait_for_output("ready")

    def test_fails_otherwise_as_well(rocemu_nic):
        rocemu_nic().run(SAY, input=FINDING)
        assert False
'''


@pytest.mark.usefixtures("checking")
def test_findings_fail_the_test(pytester):
    pytester.makepyfile(SUITE.format(finding=FINDING))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--rocemu-check=leaks", timeout=60)
    result.assert_outcomes(passed=3, failed=2, errors=1)
    text = result.stdout.str()
    for name in ("test_wrong", "test_fails_otherwise_as_well"):
        assert f"FAILED test_findings_fail_the_test.py::{name}" in text
    assert "ERROR test_findings_fail_the_test.py::test_wrong_at_the_end" in text
    assert text.count("#0 main  x.c:3") >= 3


needs_check = pytest.mark.skipif(not rocemu.has_command("run --check"), reason="this rocemu has no run --check")


@needs_check
def test_a_program_that_is_right_is_silent(needs):
    needs("ibv_rc_pingpong")
    with rocemu.Nic(check=True) as nic:
        port = nic.tcp_port()
        nic.run_pair(f"ibv_rc_pingpong -p {port} -d rocemu0 -g 1 -n 50",
                     f"ibv_rc_pingpong -p {port} -d rocemu1 -g 1 -n 50 localhost")
    assert nic.findings() == []


def test_a_nic_without_checks_has_no_findings_to_ask_for():
    with rocemu.Nic() as nic, pytest.raises(rocemu.CommandFailed, match="nothing was looked for"):
        nic.findings()


@needs_check
def test_a_program_that_leaks_is_found(tmp_path):
    source, program = tmp_path / "leak.c", tmp_path / "leak"
    source.write_text("""
        #include <infiniband/verbs.h>
        int main(void) {
          struct ibv_device** devices = ibv_get_device_list(0);
          struct ibv_context* context = ibv_open_device(devices[0]);
          return !ibv_alloc_pd(context);
        }""")
    if os.system(f"cc -g -o {program} {source} -libverbs") != 0:
        pytest.skip("no C compiler, or no libibverbs-dev")
    with rocemu.Nic(check="leaks") as nic:
        nic.run([program])
        found = nic.findings()
    assert [finding.name for finding in found] == ["leaks"]
    assert found[0].verb == "ibv_alloc_pd"
    assert any(frame.function == "main" for frame in found[0].backtraces[0].frames)
    assert nic.findings() == found
