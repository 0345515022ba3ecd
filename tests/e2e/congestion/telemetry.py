#!/usr/bin/python3 -B
"""telemetry.py: ib_write_bw across a dumbbell under HPCC, Swift and TIMELY. Under HPCC the switches' records come
back and are counted in status, queues stay short, and the capture is one that any tool reads; under Swift hops are known
as well; under TIMELY packets are the standard's.

ROCEMU names the rocemu command to use (default: the one in PATH)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import check_pcap  # noqa: E402
from pairs import Pair  # noqa: E402

ROCEMU = os.environ.get("ROCEMU", "rocemu")
SECONDS = 2
# For a path of 200 Mbit/s and some 200 us, and a machine on which the turns of a NIC may take a millisecond.
SPECS = {
    "hpcc": "hpcc,base_rtt=2000,w_ai=500",
    "swift": "swift,base_target=2000,hop_scale=50,fs_range=400",
    "timely": "timely,t_low=2000,t_high=10000,min_rtt=1000,delta=10,min_rate=20",
}


def measure():
    """One sender: prints what status shows of it meanwhile, and what it got through."""
    arguments = ["-F", "-s", "65536", "-m", "1024", "-D", str(SECONDS), "--report_gbits"]
    with Pair("ib_write_bw", arguments, "rocemu2", "rocemu0") as pair:
        pair.start_server()
        pair.start_client()
        flows, queues, began = [], [], time.monotonic()
        while pair.client.wait(0.05) is None:
            if time.monotonic() - began < 0.4 * SECONDS:
                continue
            now = json.loads(subprocess.check_output([ROCEMU, "status", "--json"]))
            queues += [port["queue_bytes"] for port in now["network"] if port["port"] == "s0 to s1"]
            flows += now["devices"][0]["congestion_control"]["qps"]
        gbits = float(re.findall(r"^ *65536 +\d+ +\S+ +(\S+)", pair.client.output(), re.M)[-1])
        print(json.dumps({"gbits": gbits, "queue_bytes": sum(queues) / max(len(queues), 1), "flow": flows[-1]}))


def run(algorithm, pcap):
    output = subprocess.run([ROCEMU, "run", "--devices", "4", "--network", HERE / "ecn.toml", "--pcap", pcap,
                             "--congestion", SPECS[algorithm], "--", __file__, "--inside"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    print(algorithm, output, end="", flush=True)
    return json.loads(output.splitlines()[-1])


def expect(condition, what):
    if not condition:
        sys.exit(f"FAIL: {what}")


def records(pcap):
    """How long what stands behind the datagrams is, and the most switches that one names."""
    lengths, most = set(), 0
    for frame in check_pcap.frames(pcap):
        packet, header = check_pcap.ip_packet(frame)
        record = packet[header + int.from_bytes(packet[header + 4:header + 6], "big"):]
        lengths.add(len(record))
        most = max(most, record[7] if record else 0)
    return lengths, most


def main():
    if "--inside" in sys.argv:
        return measure()
    if shutil.which("ib_write_bw") is None:
        print("SKIP: ib_write_bw is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for algorithm, record_bytes in (("hpcc", {92}), ("swift", {12}), ("timely", set())):
            pcap = pathlib.Path(folder) / f"{algorithm}.pcap"
            result = run(algorithm, pcap)
            expect(check_pcap.check_file(pcap, [], with_tshark=False), f"{algorithm}: the capture")
            lengths, most = records(pcap)
            expect(lengths - {0} == record_bytes, f"{algorithm}: records of {lengths} bytes")
            expect(most == (2 if record_bytes else 0), f"{algorithm}: {most} switches in the records")
            # A busy machine delays NICs, and delay slows Swift and TIMELY down, as it is meant to.
            expect(result["gbits"] > 0.05 * 0.2, f"{algorithm}: the flow starved")
            expect(result["queue_bytes"] < 150_000, f"{algorithm}: the queue was not kept short")
            if algorithm == "hpcc":
                expect(result["flow"]["telemetry_hops"] == 2, "status does not show two hops")
            if algorithm == "swift":
                expect(result["flow"]["hops"] == 2, "status does not show two hops")
            pcap.unlink()
    print("PASS")


if __name__ == "__main__":
    sys.exit(main())
