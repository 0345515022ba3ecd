#!/usr/bin/python3 -B
"""dumbbell.py [SPEC]: two ib_write_bw across a dumbbell whose middle link marks. Without SPEC first without congestion
control: the queue is as long as both windows; then with dcqcn, or SPEC: marks draw CNPs, CNPs slow the senders, and the
queue is short; the link is still used.

ROCEMU names the rocemu command to use (default: the one in PATH)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from pairs import Pair  # noqa: E402

ROCEMU = os.environ.get("ROCEMU", "rocemu")
# The paper's rules with times and steps for a link that is some hundred times slower than its links.
SPEC = ("dcqcn:paper,rpg_min_rate=10,rpg_ai_rate=1,rpg_hai_rate=2,rpg_byte_reset=0,rpg_time_reset=3000,"
        "dce_tcp_rtt=2200,min_time_between_cnps=2000")
SECONDS = 5
SECONDS_WITHOUT = 2
LONG_QUEUE_BYTES = 400_000
SETTLED = 0.4  # of the time: what is measured after it is not the beginning


def status():
    return json.loads(subprocess.check_output([ROCEMU, "status", "--json"]))


def counter(device, name):
    path = f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}"
    return int(subprocess.check_output([ROCEMU, "exec", "--", "cat", path]))


def gbits(pair):
    return float(re.findall(r"^ *65536 +\d+ +\S+ +(\S+)", pair.client.output(), re.M)[-1])


def measure(seconds):
    """Both senders at once: prints what came of it."""
    arguments = ["-F", "-s", "65536", "-D", str(seconds), "--report_gbits"]
    with Pair("ib_write_bw", arguments, "rocemu2", "rocemu0") as first, \
            Pair("ib_write_bw", arguments, "rocemu3", "rocemu1") as second:
        for pair in (first, second):
            pair.start_server()
            pair.start_client()
        queues, rates, began = [], [], time.monotonic()
        while first.client.wait(0.05) is None:
            if time.monotonic() - began < SETTLED * seconds:
                continue
            now = status()
            queues += [port["queue_bytes"] for port in now["network"] if port["port"] == "s0 to s1"]
            rates += [qp["rate_mbps"] for device in now["devices"][:2]
                      for qp in device["congestion_control"]["qps"]]
        second.client.wait(60)
        now = status()
        middle = next(port for port in now["network"] if port["port"] == "s0 to s1")
        devices = now["devices"]
        print(json.dumps({
            "gbits": [gbits(first), gbits(second)],
            "queue_bytes": sum(queues) / max(len(queues), 1),
            "samples": len(queues),
            "rates": sorted(rates)[len(rates) // 2] if rates else None,
            "marked": middle["marked"],
            "lost": middle["lost"],
            "algorithm": [device["congestion_control"]["algorithm"] for device in devices],
            **{name: [device["counters"][name] for device in devices]
               for name in ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored",
                            "retransmitted_frames", "early_retransmissions", "ack_timeouts", "tx_frames")},
            "sysfs": [counter("rocemu2", "np_cnp_sent"), counter("rocemu0", "rp_cnp_handled")],
        }))


def run(seconds, *options):
    output = subprocess.run([ROCEMU, "run", "--devices", "4", "--network", HERE / "ecn.toml", *options, "--",
                             __file__, "--inside", str(seconds)], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(" ".join(map(str, options)) or "without", output, end="", flush=True)
    return json.loads(output.splitlines()[-1])


def expect(condition, what):
    if not condition:
        sys.exit(f"FAIL: {what}")


def main():
    if "--inside" in sys.argv:
        return measure(int(sys.argv[-1]))
    if shutil.which("ib_write_bw") is None:
        print("SKIP: ib_write_bw is missing")
        sys.exit(77)
    if len(sys.argv) == 1:
        without = run(SECONDS_WITHOUT)
        expect(without["marked"] == 0 and sum(without["np_cnp_sent"]) == 0, "nothing asked for marks, and there are some")
        expect(without["queue_bytes"] > LONG_QUEUE_BYTES, "without congestion control the queue was not long")
    controlled = run(SECONDS, "--congestion", SPEC if len(sys.argv) == 1 else sys.argv[1])
    expect(controlled["marked"] > 20, "nothing was marked")
    for name in ("np_ecn_marked_roce_packets", "np_cnp_sent"):
        expect(min(controlled[name][2:]) > 5, f"receivers: {name}")
    expect(min(controlled["rp_cnp_handled"][:2]) > 5, "senders: rp_cnp_handled")
    expect(sum(controlled["rp_cnp_ignored"]) == 0, "senders ignored CNPs")
    expect(min(controlled["sysfs"]) > 5, "sysfs does not show the CNPs")
    expect(controlled["rates"] < 900, "no QP was slower than its line")
    expect(controlled["queue_bytes"] < LONG_QUEUE_BYTES / 3, "the queue was not kept short")
    expect(sum(controlled["gbits"]) > 0.5 * 0.2, "the link was not used")
    print("PASS")


if __name__ == "__main__":
    main()
