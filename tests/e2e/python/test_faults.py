"""Faults on request, by the package."""
import pytest

import rocemu

pytestmark = pytest.mark.skipif(not rocemu.has_command("fault"), reason="this rocemu has no command fault")

PAIR = ("ibv_rc_pingpong -p {port} -d rocemu0 -g 1 -n 100",
        "ibv_rc_pingpong -p {port} -d rocemu1 -g 1 -n 100 localhost")


def pingpong(nic, **options):
    port = nic.tcp_port()
    return nic.run_pair(*[command.format(port=port) for command in PAIR], **options)


def test_a_port_goes_down_and_comes_back(nic):
    fault = nic.fault("rocemu0", "port-down", for_="200ms")
    fault.wait_for_strike()
    nic.wait_until(lambda s: s["rocemu0"].port_state == "ACTIVE")
    with nic.fault("rocemu1", "port-down"):
        nic.wait_until(lambda s: s["rocemu1"].port_state == "DOWN")
    nic.wait_until(lambda s: s["rocemu1"].port_state == "ACTIVE")


def test_a_call_fails_and_does_so_no_more(nic, needs):
    needs("ibv_rc_pingpong")
    with nic.fault("rocemu1", "call-fails", call="create-qp", errno="ENOMEM") as fault:
        with pytest.raises(rocemu.ProgramFailed, match="Couldn't create QP"):
            pingpong(nic)
        assert fault.strikes == 1
    pingpong(nic)


def test_a_qp_fails_under_a_program(nic, needs):
    needs("rping")
    with nic.start("rping -s -a 10.77.0.1 -P") as server:
        nic.wait_listening(server)
        with nic.start("rping -c -I 10.77.0.2 -a 10.77.0.1 -C 1000000") as client:
            qp = nic.wait_until(lambda s: next((q for q in s["rocemu1"].qps if q.state == "RTS"), None))
            nic.fault("rocemu1", "qp-error", status="retry-exc-err", qp=qp.qpn, request=100).wait_for_strike()
            assert "cq completion failed status 12" in client.wait(timeout=30, expect=None).stderr


def test_what_is_set_is_listed_and_taken_back(nic):
    nic.fault("all", "no-traffic", after="1000s")
    nic.fault("rocemu0", "post-fails", p="1%", seed=7)
    faults = nic.faults()
    assert {fault.fault for fault in faults} == {"no-traffic", "post-fails"}
    assert {fault.state for fault in faults} == {"waiting", "active"}
    nic.clear_fault("all")
    assert not nic.faults()
    with pytest.raises(rocemu.CommandFailed):
        nic.fault("rocemu0", "no-such-thing")


def test_faults_from_the_start():
    with rocemu.Nic(fault=["rocemu0 port-down", "rocemu1 slow rate=1gbit"]) as nic:
        nic.wait_until(lambda s: s["rocemu0"].port_state == "DOWN")
        assert len(nic.faults()) == 2


def test_the_nic_is_killed(nic):
    nic.fault("rocemu0", "kill")
    with pytest.raises(rocemu.NicLost, match="signal 9"):
        rocemu.wait_until(lambda: not nic.status(), timeout=10)


def test_a_nic_that_ends_just_now_is_lost(nic, monkeypatch):
    """Its sockets are closed, and its process is there for a moment longer."""
    real, asked = rocemu._processes.is_alive, []
    monkeypatch.setattr(rocemu._processes, "is_alive",
                        lambda process: asked.append(process) or len(asked) == 1 or real(process))
    nic.fault("rocemu0", "kill")
    with pytest.raises(rocemu.NicLost):
        rocemu.wait_until(lambda: not nic.status(), timeout=10)
