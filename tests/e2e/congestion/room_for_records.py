#!/usr/bin/python3 -B
"""Records of the path's telemetry fit into an interface's MTU beside whole packets: over an MTU of 4200, which carries path
MTU 4096 without them, HPCC has path MTU 2048. Messages of all sizes get through: the small ones agree on records. UDP
ports carry none, and are offered none: with ACK timeout 0 nobody would send again what a peer dropped for its record.

    room_for_records.py

ROCEMU names the rocemu command to use. Exit code 77: it cannot be run here."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + "/../tools", HERE + "/../lab"]
from lab_hosts import Failed, Lab, need  # noqa: E402
from program_cases import skip  # noqa: E402
from telemetry import SPECS  # noqa: E402

ACTIVE_MTU = {"hpcc": 2048, "swift": 4096}


def check(algorithm):
    with Lab("records", "--mtu", "4200", "--congestion", SPECS[algorithm]) as lab:
        printed = lab.on("h1", "ibv_devinfo")
        if f"active_mtu:\t\t{ACTIVE_MTU[algorithm]} " not in printed:
            raise Failed(f"{algorithm}: not an MTU of {ACTIVE_MTU[algorithm]}: {printed}")
        print(algorithm, lab.pair("ib_write_bw", "-F", "-x", "1", "-a", "-n", "5").splitlines()[-2], flush=True)


def check_udp(algorithm):
    with Lab("records", "--link", "udp", "--congestion", SPECS[algorithm]) as lab:
        printed = lab.pair("ib_write_lat", "-F", "-x", "0", "-n", "100", "--qp-timeout=0")
        print(algorithm, "udp", printed.splitlines()[-2], flush=True)


def main():
    need(ip="iproute2", ib_write_bw="perftest", ibv_devinfo="ibverbs-utils")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun is not there or not writable")
    try:
        for algorithm in ACTIVE_MTU:
            check(algorithm)
        check_udp("hpcc")
    except (Failed, subprocess.SubprocessError) as why:
        sys.exit(f"FAIL: {why}")
    print("PASS")


if __name__ == "__main__":
    main()
