"""Conditions, and what is said when they do not come to hold."""
import pytest

import rocemu
from rocemu._waiting import Recorder, what_it_read


def test_the_first_true_value_is_returned():
    values = iter([0, "", [], "there"])
    assert rocemu.wait_until(lambda: next(values)) == "there"


def test_the_error_has_the_condition_and_what_was_seen():
    with pytest.raises(rocemu.WaitTimeout, match=r"waited 0.1 s for .*lambda: \[\].*it returned \[\]"):
        rocemu.wait_until(lambda: [], timeout=0.1)
    with pytest.raises(rocemu.WaitTimeout, match="waited 0 s for rain; last seen: it returned None"):
        rocemu.wait_until(lambda: None, timeout=0, what="rain")


def test_a_condition_that_raises_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        rocemu.wait_until(lambda: 1 // 0)


def test_of_a_nic_the_values_that_the_condition_looked_at(nic):
    assert nic.wait_until(lambda s: s["rocemu0"].port_state) == "ACTIVE"
    with pytest.raises(rocemu.WaitTimeout) as caught:
        nic.wait_until(lambda s: s["rocemu1"].counters.retransmitted_frames > 5, timeout=0.1)
    assert "s[\"rocemu1\"].counters.retransmitted_frames > 5" in str(caught.value)
    assert "last seen: ['rocemu1'].counters.retransmitted_frames = 0" in str(caught.value)
    with pytest.raises(rocemu.WaitTimeout, match=r"a device of its own; last seen: len\(devices\) = 2"):
        nic.wait_until(lambda s: len(s.devices) > 2, timeout=0.1, what="a device of its own")


def test_what_a_condition_reads_is_noted():
    status = rocemu.Status("n", devices=(rocemu.Device("a", mtu=1), rocemu.Device("b", mtu=2)))
    assert what_it_read(lambda s: any(device.mtu > 5 for device in s.devices), status) == (
        "len(devices) = 2, devices[0].mtu = 1, devices[1].mtu = 2")
    assert what_it_read(lambda s: s["b"].ipv4, status) == ""
    earlier = status["a"].counters
    assert "tx_frames = 0" in what_it_read(lambda s: (s["a"].counters - earlier).tx_frames, status)
    assert len(Recorder((1, 2))) == 2
