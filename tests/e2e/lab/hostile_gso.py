#!/usr/bin/python3 -B
"""What a hostile peer sends to the RoCE port in batches (send_gso.py): the NIC lives and counts what it refuses;
programs between the hosts run on meanwhile and run afterwards.

    hostile_gso.py [--user] interface|udp      how the NICs are connected (rocemu lab --link)

--user: as an ordinary user without any capability, in a user namespace (started by root). Exit code 77: it cannot be run
here."""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from lab_hosts import Failed, Lab, need, wait_until, words_as_user
from program_cases import skip

ATTACK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "send_gso.py")
ADDRESSES = ("10.99.0.1", "fd99::1")
STORM_SECONDS = 1
RAW_PACKETS = 1500
REFUSALS = ("rx_malformed", "rx_icrc_errors", "rx_no_qp", "rx_mismatched")
LEAST_SHARE = 0.5  # of what is sent: a loaded machine may lose some in the socket's buffer


def attack(lab, *words):
    """From h2. Returns the numbers that the attacker prints."""
    printed = lab.on("h2", "env", "-u", "LD_PRELOAD", sys.executable, "-B", ATTACK, *words)
    return [int(word) for word in printed.split()]


class Counts:
    """What the NIC of h1 has counted since this was made."""

    def __init__(self, lab):
        self._lab = lab
        self._before = self._now()

    def _now(self):
        device = self._lab.device("h1")
        return {"arrived": device["port"]["rx_frames"], "too_long": device["port"]["dropped_malformed"],
                **{name: device["counters"][name] for name in REFUSALS}}

    def take(self):
        now = self._now()
        counts = {name: now[name] - self._before[name] for name in now}
        counts["refused"] = sum(counts[name] for name in REFUSALS)
        return counts


def expect_alive(lab, pid, gid):
    if lab.status("h1")["pid"] != pid:
        raise Failed("the NIC is another one")
    if "PORT_ACTIVE" not in lab.on("h1", "ibv_devinfo"):
        raise Failed("the port is not active")
    lab.pair("ib_send_bw", "-F", "-x", gid, "-n", "200")  # ib_write_bw begins with a second's sleep
    lab.pair("ibv_rc_pingpong", "-g", gid, "-c", "-n", "50")


def all_sizes(lab, address):
    """Every size arrives, and each datagram is refused and counted."""
    counts = Counts(lab)
    datagrams, too_long = attack(lab, "sizes", address)
    wait_until("a NIC that has seen all", lambda: counts.take() == counts.take())
    seen = counts.take()
    if seen["refused"] != seen["arrived"] or seen["arrived"] < LEAST_SHARE * datagrams or seen["too_long"] == 0:
        raise Failed(f"of {datagrams} datagrams and {too_long} batches of longer ones: {seen}")
    print(f"     {datagrams} datagrams, {too_long} batches of too long ones: {seen}")


def storm(lab, address, gid):
    """In the middle of traffic, which goes on."""
    words = ["ib_write_bw", "-F", "-x", gid, "-s", "16384", "-D", str(STORM_SECONDS + 2), "-u", "18"]
    counts = Counts(lab)
    server = lab.server(*words)
    client = lab.start("h2", *words, "h1")
    try:
        datagrams, too_long = attack(lab, "storm", address, str(STORM_SECONDS))
        client.must_end_well()
        server.must_end_well()
    finally:
        client.kill()
        server.kill()
    seen = counts.take()
    if not seen["rx_malformed"] or not seen["rx_icrc_errors"] or not seen["too_long"]:
        raise Failed(f"of {datagrams} datagrams and {too_long} batches of longer ones: {seen}")
    print(f"     {datagrams} datagrams, {too_long} batches of too long ones: {seen}")


def raw(lab, address):
    """Headers and descriptions that contradict each other."""
    counts = Counts(lab)
    mac = lab.device("h1")["mac"]
    if mac.startswith("02:52"):  # of a NIC on UDP sockets: not the interface's
        mac = lab.on("h1", "ip", "-brief", "link", "show", "dev", "eth0").split()[2]
    packets, = attack(lab, "raw", address, mac, str(RAW_PACKETS))
    wait_until("a NIC that has seen all", lambda: counts.take() == counts.take())
    seen = counts.take()
    if packets == 0 or seen["refused"] == 0:
        raise Failed(f"of {packets} packets: {seen}")
    print(f"     {packets} packets: {seen}")


def main():
    words = words_as_user(__file__)
    need(ip="iproute2", ib_write_bw="perftest", ib_send_bw="perftest", ibv_rc_pingpong="ibverbs-utils")
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (4, 18):
        skip("this kernel has no UDP_SEGMENT")
    link = words[0]
    gids = {"interface": ("1", "2"), "udp": ("0", "1")}[link]
    with Lab("gso", "--link", link) as lab:
        pid = lab.status("h1")["pid"]
        for address, gid in zip(ADDRESSES, gids):
            for case in (lambda: all_sizes(lab, address), lambda: storm(lab, address, gid), lambda: raw(lab, address)):
                case()
                expect_alive(lab, pid, gid)
        lab.down()


if __name__ == "__main__":
    try:
        main()
    except (Failed, subprocess.SubprocessError) as why:
        sys.exit(f"FAIL {why}")
