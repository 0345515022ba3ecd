"""The command's JSON and the dataclasses: without a NIC, and that a NIC shows what they name."""
import dataclasses

import pytest

import rocemu
from rocemu._json import from_json
from rocemu._status import Status


def test_what_is_unknown_is_left_out_and_what_is_missing_has_its_default():
    status = from_json(Status, {"name": "x", "of_the_future": 1,
                                "devices": [{"name": "rocemu0", "qps": [{"qpn": 17, "new": {}}]}]})
    assert status["rocemu0"].qps == (rocemu.Qp(17),)
    assert status["rocemu0"].counters == rocemu.Counters()
    assert status.connection_management.listeners == ()


def test_a_device_by_name_and_by_number():
    status = from_json(Status, {"name": "x", "devices": [{"name": "a"}, {"name": "b"}]})
    assert (status["b"].name, status[0].name) == ("b", "a")
    with pytest.raises(LookupError, match="no device 'c', but a, b"):
        status["c"]


def test_addresses():
    device = rocemu.Device("d", gids=("fe80:0:0:0:52:4fff:fe43:1", "0:0:0:0:0:ffff:0a4d:0001", "fd52::1"))
    assert (device.ipv4, device.ipv6) == ("10.77.0.1", "fd52::1")
    with pytest.raises(LookupError, match="no IPv4 address, but fd52::1"):
        rocemu.Device("d", gids=("fd52::1",)).ipv4  # pylint: disable=expression-not-assigned


def test_counters_are_subtracted():
    now, then = rocemu.Counters(tx_frames=7, rx_frames=2), rocemu.Counters(tx_frames=3, rx_frames=2)
    assert (now - then).nonzero() == {"tx_frames": 4}


# What the package leaves in Status.json alone.
NOT_TYPED = {"Status": {"dma", "engine", "network"}, "Device": {"recovery", "congestion_control"}}


def compare(shown, kind):
    """Every key that the NIC shows has a field, and every field is shown."""
    fields = {field.name for field in dataclasses.fields(kind)} - {"json"}
    missing = fields - shown.keys()
    assert not missing and shown.keys() - fields <= NOT_TYPED.get(kind.__name__, set()), kind
    return shown


def test_the_fields_are_those_that_a_nic_shows(nic):
    shown = compare(nic.status().json, rocemu.Status)
    compare(shown["connection_management"], rocemu.ConnectionManagement)
    device = compare(shown["devices"][0], rocemu.Device)
    compare(device["objects"], rocemu.Objects)
    compare(device["counters"], rocemu.Counters)
    compare(device["port"], rocemu.PortCounters)
    compare(device["impairments"], rocemu.Impairments)
    for link in nic._ask_json("link", "show", *nic._which, "--json"):
        compare(link, rocemu.Link)


def test_the_fields_of_what_programs_hold(nic, needs):
    needs("rping")
    with nic.start("rping -s -a 10.77.0.1 -P") as server:
        nic.wait_listening(server)
        with nic.start("rping -c -I 10.77.0.2 -a 10.77.0.1 -C 1000000 -v"):
            status = nic.wait_until(lambda s: s if s["rocemu0"].qps and s.connection_management.connections
                                    else None)
    shown = status.json
    compare(shown["devices"][0]["qps"][0], rocemu.Qp)
    compare(shown["connection_management"]["listeners"][0], rocemu.Listener)
    compare(shown["connection_management"]["connections"][0], rocemu.Connection)
