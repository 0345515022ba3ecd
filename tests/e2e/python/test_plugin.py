"""The fixture and the marker, in test suites of their own."""
import re

import pytest


def run(pytester, text, *options):
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=120)


def test_marker_and_call_say_what_nic(pytester):
    result = run(pytester, """
        import pytest

        pytestmark = pytest.mark.rocemu(devices=1, impair="delay=1us")

        def test_module(rocemu_nic):
            assert [link.spec for link in rocemu_nic().links()] == ["delay=1us", "none"]

        @pytest.mark.rocemu(devices=3)
        def test_closest_and_call(rocemu_nic):
            assert len(rocemu_nic().status().devices) == 3
            nic = rocemu_nic(devices=2, impair=None)
            assert {link.spec for link in nic.links()} == {"none"} and len(nic.links()) == 4
            """, "--strict-markers")
    result.assert_outcomes(passed=2)


def test_nics_end_with_their_test(pytester):
    result = run(pytester, """
        seen = []

        def test_one(rocemu_nic):
            seen.append(rocemu_nic())
            assert seen[0].state_dir.is_dir()

        def test_next():
            assert seen[0].closed and not seen[0].state_dir.exists()
        """)
    result.assert_outcomes(passed=2)


def test_log_and_wire_of_a_failure_are_shown(pytester):
    result = run(pytester, """
        def test_fails(rocemu_nic):
            nic = rocemu_nic(log_level="debug")
            nic.run_pair(f"ibv_rc_pingpong -p {nic.tcp_port()} -d rocemu0 -g 1 -n 5",
                         "sh -c 'exit 3'")

        def test_passes(rocemu_nic):
            assert rocemu_nic().pcap.name == "nic0.pcap"
            assert rocemu_nic(pcap=False).pcap is None
        """, "--basetemp", str(pytester.path / "kept"))
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([".*exit status 3.*", r"-+ log of the NIC run-\d+-\w+ -+", r".*rocemud info: 2 devices.*",
                                  r"-+ wire of the NIC run-.*", r"recorded in .*/test_fails0/nic0.pcap"])
    kept = {path.resolve() for path in (pytester.path / "kept").glob("*/nic*.pcap")}  # there are links as well
    assert [path.parent.name for path in kept] == ["test_fails0"]


def test_a_nic_that_cannot_be_is_a_failure_with_its_reason(pytester):
    result = run(pytester, """
        def test_bad(rocemu_nic):
            rocemu_nic(impair="loss=1")
        """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*loss: '1' has no unit*"])


def test_workers_at_the_same_time(pytester):
    pytest.importorskip("xdist")
    result = run(pytester, """
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_pair(rocemu_nic, number):
            nic = rocemu_nic()
            port = nic.tcp_port()
            pair = nic.run_pair(f"ibv_rc_pingpong -p {port} -d rocemu0 -g 1 -n 20",
                                f"ibv_rc_pingpong -p {port} -d rocemu1 -g 1 -n 20 localhost")
            assert "20 iters" in pair.client.stdout
        """, "-n", "4")
    result.assert_outcomes(passed=8)


def test_the_plugin_is_described(pytester):
    text = run(pytester, "", "--markers").stdout.str()
    assert re.search(r"@pytest\.mark\.rocemu\(\*\*options\):", text)
