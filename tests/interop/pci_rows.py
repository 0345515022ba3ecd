"""What may happen to a network card while a NIC is on it."""
import dataclasses
import re
import time
from typing import Callable

from guest import GuestFailed
from lab import Difference
from pci_nic import ADDRESS, CARD, MAC, SLOT
from rows import LARGE_MTU, SMALL_MTU, Row

GONE_SECONDS = 40
FLOWS_SECONDS = 60
TRAFFIC = Row("ib_write_bw", "", "")
AFTERWARDS = Row("afterwards", "ibv_rc_pingpong -d {device} -g {gid} -m 1024 -s 10000 -n 50 -c",
                 "ibv_rc_pingpong -d {device} -g {gid} -m 1024 -s 10000 -n 50 -c {host}")
PATIENCE = 18  # 8.6 s until retries are exceeded


class Traffic:
    """ib_write_bw from the peer to the card. Entering it waits until data flow."""

    def __init__(self, lab):
        self.lab = lab
        self.ends = []

    def __enter__(self):
        server, client = self.lab.second, self.lab.first
        words = "ib_write_bw -d {} -x {} -F -u {} -s 16384 -D 8"
        self.ends = [server.start(words.format(server.device, self.lab.gids[server.name, 4], PATIENCE))]
        deadline = time.monotonic() + FLOWS_SECONDS
        while not server.ready(TRAFFIC) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.ends.append(client.start(words.format(client.device, self.lab.gids[client.name, 4], PATIENCE) +
                                      f" {server.host}"))
        while self.received() < 100:
            if self.ends[1].code() is not None or time.monotonic() > deadline:
                raise Difference(f"no traffic: {self.output()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for end in self.ends:
            end.stop()

    def received(self):
        return self.lab.second.counters()["rx_frames"]

    def output(self):
        return "\n".join(f"---- {end.command} (exit code {end.code()})\n{end.output()}" for end in self.ends)

    def must_go_on(self):
        if any(end.wait(FLOWS_SECONDS) != 0 for end in reversed(self.ends)):
            raise Difference(f"it did not survive: {self.output()}")


def afterwards(lab):
    for server in lab.sides():
        lab.pair(AFTERWARDS, server)


def longer_frames(lab):
    """Datagrams and pings of 4,000 bytes to a card with an MTU of 1,500: they are lost, and nothing else is."""
    nic, rxe = lab.second, lab.first
    nic.set_mtu(SMALL_MTU)
    words = "ibv_ud_pingpong -d {} -g {} -n 20"
    server = nic.start(words.format(nic.device, lab.gids[nic.name, 4]) + " -s 900")
    client = None
    try:
        deadline = time.monotonic() + FLOWS_SECONDS
        while not nic.ready(TRAFFIC) and time.monotonic() < deadline:
            time.sleep(0.1)
        client = rxe.start(words.format(rxe.device, lab.gids[rxe.name, 4]) + f" -s 4000 {nic.host}")
        rxe.guest.run(f"ping -c 2 -W 1 -s 3900 {nic.addresses[4]} > /dev/null; true")
        if client.wait(2) is not None or server.code() is not None:
            raise Difference(f"it ended: {client.output()}\n{server.output()}")
    finally:
        for end in (server, client):
            if end is not None:
                end.stop()
    rxe.guest.run(f"ping -c 1 -W 5 {nic.addresses[4]}")
    afterwards(lab)


def link_down(lab):
    """The link goes down and comes back in the midst of traffic."""
    nic = lab.second
    with Traffic(lab) as traffic:
        nic.guest.monitor("set_link", name=CARD, up=False)
        nic.wait_for_port("DOWN")
        nic.guest.monitor("set_link", name=CARD, up=True)
        nic.wait_for_port("ACTIVE")
        traffic.must_go_on()
    afterwards(lab)


def must_go(nic):
    deadline = time.monotonic() + GONE_SECONDS
    while nic.guest.run(f"ls /sys/bus/pci/devices/{ADDRESS} > /dev/null 2>&1 && echo there; true"):
        if time.monotonic() > deadline:
            raise Difference(f"the kernel waits for it still: {nic.log()}\n{nic.guest.run('dmesg | tail -n 5')}")
        time.sleep(0.2)


def taken_away(lab, card):
    """The card is unplugged in the midst of traffic, and plugged in again for another NIC."""
    nic = lab.second
    with Traffic(lab):  # of rxe, which asks for ever
        nic.guest.monitor("device_del", id=CARD)
        must_go(nic)
        nic.wait_for_port("DOWN")
    words = dict(word.split("=", 1) for word in card.device.split(",")[1:])
    nic.guest.monitor("device_add", driver=card.model, id=CARD, bus=SLOT, netdev="link", mac=MAC, **words)
    deadline = time.monotonic() + GONE_SECONDS
    while not nic.guest.run(f"ls -d /sys/bus/pci/devices/{ADDRESS} 2>/dev/null; true"):
        if time.monotonic() > deadline:
            raise Difference(f"the card did not come back: {nic.guest.run('dmesg | tail -n 5')}")
        time.sleep(0.2)
    nic.down()
    nic.bind()
    nic.set_mtu(LARGE_MTU)
    afterwards(lab)


@dataclasses.dataclass(frozen=True)
class Change:
    title: str
    work: Callable
    with_uio: bool = True


ROWS = [Change("frames longer than the card's MTU", lambda lab, card: longer_frames(lab)),
        Change("the link goes down and comes back", lambda lab, card: link_down(lab)),
        # uio does not tell of it.
        Change("the card is taken away and comes back", taken_away, with_uio=False)]


def run_changes(lab, card, options, report):
    for row in ROWS:
        if not re.search(options.only, row.title) or (options.driver != "vfio-pci" and not row.with_uio):
            continue
        lab.use_mtu(LARGE_MTU)
        started = time.monotonic()
        try:
            row.work(lab, card)
            result, remark = "ok", ""
        except (Difference, GuestFailed, OSError) as why:
            result, remark = "FAIL", f"{why}\n{lab.second.log()}"
        lab.mtu = None
        report.add(card.model, row.title, "peer rxe", result, remark, time.monotonic() - started)
