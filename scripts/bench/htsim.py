"""rocemu sim beside csg-htsim (github.com/Broadcom/csg-htsim): the same leaf-spine and the same flows, by the payload packets
that a core brings to their receivers in a second of its time, and the cables that these cross on the way. Both count is by
the list of flows, all of which have to end, so that it does not matter how either acknowledges.

htsim is the user's: a checkout of it that has been built, named by --htsim or HTSIM_DIR. Of its models

    htsim_ndp   begins flows when they are to begin, so it has a load of web search flows: receivers ask for packets one by
                one, switches trim, packets are sprayed;
    htsim_roce  begins all flows at once: a permutation, with PFC. It sends at the link's rate and goes back N.
"""
import os
import random
import re
import tempfile
from pathlib import Path

import lab
from finish import finish

HERE = Path(__file__).resolve().parent
LEAVES, SPINES, HOSTS_PER_LEAF, RATE_GBIT, DELAY_NS = 8, 8, 16, 100, 1000
HOSTS = LEAVES * HOSTS_PER_LEAF
PACKET_BYTES = 1024  # of payload
LOAD, DURATION_NS = 0.5, 1_000_000
PERMUTATION_BYTES = 4_000_000

TOPOLOGY = f"""Nodes {HOSTS}
Tiers 2
Podsize {HOSTS}

Tier 0
Downlink_speed_Gbps {RATE_GBIT}
Radix_Down {HOSTS_PER_LEAF}
Radix_Up {SPINES}
Oversubscribed {HOSTS_PER_LEAF // SPINES}
Downlink_Latency_ns {DELAY_NS}
Switch_Latency_ns 0

Tier 1
Downlink_speed_Gbps {RATE_GBIT}
Radix_Down {LEAVES}
Downlink_Latency_ns {DELAY_NS}
Switch_Latency_ns 0
"""

EXPERIMENT = f"""duration = "{DURATION_NS}ns"
drain = "1s"
[network.topology]
kind = "leaf-spine"
leaves = {LEAVES}
spines = {SPINES}
hosts_per_leaf = {HOSTS_PER_LEAF}
[network.links]
rate = "{RATE_GBIT}gbit"
delay = "{DELAY_NS}ns"
[workload.flows]
kind = "trace"
file = "flows.txt"
[results]
interval = "0ns"
plots = false
"""


def size_table():
    """Sizes in bytes and the share of flows that are no longer, of the table of rocemu sim."""
    units = {"b": 1, "kb": 1000, "mb": 1_000_000}
    text = (lab.ROOT / "emulator/experiment/sizes/websearch.txt").read_text(encoding="utf-8")
    return [(int(size) * units[unit], float(share) / 100)
            for size, unit, share in re.findall(r"^(\d+)(b|kb|mb) ([\d.]+)%", text, re.M)]


def poisson_flows():
    """(start in ns, from, to, bytes) between random hosts, which make up LOAD of their links."""
    chance = random.Random(1)
    table = size_table()
    mean = sum((b + d) / 2 * (share - before) for (b, before), (d, share) in zip(table, table[1:]))
    gap_ns = mean * 8 / (LOAD * HOSTS * RATE_GBIT)
    flows, at = [], chance.expovariate(1 / gap_ns)
    while at < DURATION_NS:
        share = chance.random()
        (low, below), (high, above) = next(pair for pair in zip(table, table[1:]) if share <= pair[1][1])
        size = max(1, int(low + (high - low) * (share - below) / (above - below)))
        source, target = chance.sample(range(HOSTS), 2)
        flows.append((int(at), source, target, size))
        at += chance.expovariate(1 / gap_ns)
    return flows


def permutation_flows():
    chance = random.Random(1)
    order = chance.sample(range(HOSTS), HOSTS)
    return [(0, source, target, PERMUTATION_BYTES) for source, target in zip(order, order[1:] + order[:1])]


def figures(flows, seconds, most_bytes):
    packets = [(source, target, (size - 1) // PACKET_BYTES + 1) for _, source, target, size in flows]
    hops = sum(count * (2 if source // HOSTS_PER_LEAF == target // HOSTS_PER_LEAF else 4)
               for source, target, count in packets)
    return {"payload_packets_per_s": sum(count for *_, count in packets) / seconds,
            "payload_hops_per_s": hops / seconds, "gb_of_memory": most_bytes / 1e9}


def rocemu(build, flows, more=""):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "flows.txt").write_text(
            "".join(f"{at}ns h{source} h{target} {size}b\n" for at, source, target, size in flows), encoding="utf-8")
        (scratch / "experiment.toml").write_text(EXPERIMENT + more, encoding="utf-8")
        _, seconds, most_bytes = finish([build.rocemu, "sim", scratch / "experiment.toml", "--out", scratch / "out"])
        ended = (scratch / "out/flows.csv").read_text(encoding="utf-8").count(",completed")
    if ended != len(flows):
        raise lab.MeasurementFailed(f"rocemu sim: {ended} of {len(flows)} flows ended")
    return figures(flows, seconds, most_bytes)


def program_of(checkout, name):
    directory = checkout or os.environ.get("HTSIM_DIR")
    if not directory:
        raise lab.NotMeasured("name a checkout of csg-htsim that has been built: --htsim DIR or HTSIM_DIR")
    program = Path(directory).resolve() / "sim/datacenter" / name
    if not os.access(program, os.X_OK):
        raise lab.NotMeasured(f"{program} is not there: the checkout of csg-htsim has not been built")
    return program


def htsim(checkout, name, flows, *options):
    program = program_of(checkout, name)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "network.topo").write_text(TOPOLOGY, encoding="utf-8")
        # Times are in picoseconds.
        (scratch / "flows.cm").write_text(
            f"Nodes {HOSTS}\nConnections {len(flows)}\n" +
            "".join(f"{source}->{target} start {at * 1000} size {size}\n" for at, source, target, size in flows),
            encoding="utf-8")
        text, seconds, most_bytes = finish(
            [program, "-topo", scratch / "network.topo", "-tm", scratch / "flows.cm", "-nodes", HOSTS, "-linkspeed",
             RATE_GBIT * 1000, "-strat", "ecmp_host", "-paths", 64, "-end", 100_000, "-o", scratch / "log", *options],
            scratch)  # where it leaves another file
    ended = len(re.findall(r" finished at ", text))
    if ended != len(flows):
        raise lab.MeasurementFailed(f"{name}: {ended} of {len(flows)} flows ended")
    return figures(flows, seconds, most_bytes)


PFC = "[nic]\nwindow_packets = 1024\n[network.pfc]\npriorities = [0]\n"


def rocemu_load(build):
    return rocemu(build, poisson_flows())


def rocemu_permutation(build):
    return rocemu(build, permutation_flows(), PFC)


def htsim_load(checkout):
    return htsim(checkout, "htsim_ndp", poisson_flows(), "-mtu", PACKET_BYTES)


def htsim_permutation(checkout):
    return htsim(checkout, "htsim_roce", permutation_flows(), "-mtu", PACKET_BYTES, "-queue_type", "lossless_input",
                 "-q", 16_000, "-pfc_thresholds", 200, 250)
