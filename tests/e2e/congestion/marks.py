#!/usr/bin/python3 -B
"""Marks of congestion reach a NIC by its port on the machine's network: two hosts of a lab, whose wire is a dumbbell
that marks. The receiver sends CNPs for them, and DCQCN slows the sender to what the middle link carries.

    marks.py [--user] interface|udp     --user: as an ordinary user without any capability (started by root)

ROCEMU names the rocemu command to use. Exit code 77: it cannot be run here."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + "/../tools", HERE + "/../lab"]
from lab_hosts import Failed, Lab, need, words_as_user  # noqa: E402
from program_cases import skip  # noqa: E402
from dumbbell import SPEC  # noqa: E402

GIDS = {"interface": {"IPv4": 1, "IPv6": 2}, "udp": {"IPv4": 0, "IPv6": 1}}
LINK_GBITS = 0.2


def check(lab, gid, ip):
    before = lab.device("h1")["counters"], lab.device("h2")["counters"]
    printed = lab.pair("ib_write_bw", "-F", "-x", str(gid), "-s", "65536", "-D", "3", "--report_gbits")
    after = lab.device("h1")["counters"], lab.device("h2")["counters"]
    gbits = float(re.findall(r"^ *65536 +\d+ +\S+ +(\S+)", printed, re.M)[-1])
    receiver, sender = ({name: now[name] - then[name] for name in now} for then, now in zip(before, after))
    seen = {"np_ecn_marked_roce_packets": receiver["np_ecn_marked_roce_packets"],
            "np_cnp_sent": receiver["np_cnp_sent"], "rp_cnp_handled": sender["rp_cnp_handled"]}
    print(f"{ip}: {gbits} Gbit/s of {LINK_GBITS}, {seen}", flush=True)
    for name, count in seen.items():
        if count <= 5:
            raise Failed(f"{ip}: {name} {count}")
    if not LINK_GBITS / 10 < gbits <= LINK_GBITS:  # it does not starve, on a busy machine either
        raise Failed(f"{ip}: {gbits} Gbit/s")


def main():
    link, = words_as_user(__file__)
    need(ip="iproute2", ib_write_bw="perftest")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun is not there or not writable")
    try:
        with Lab("marks", "--link", link, "--network", f"{HERE}/marks.toml", "--congestion", SPEC) as lab:
            for ip, gid in GIDS[link].items():
                check(lab, gid, ip)
    except (Failed, subprocess.SubprocessError) as why:
        sys.exit(f"FAIL: {why}")
    print("PASS")


if __name__ == "__main__":
    main()
