"""What the project holds itself to, each with the figures of one run that it compares."""
import dataclasses
import statistics
from typing import Optional

MET, MISSED, UNDECIDABLE, NOT_MEASURED = "met", "MISSED", "not decidable", "not measured"
# Of so many repetitions one may say otherwise.
REPETITIONS_A_DISSENTER = 5


@dataclasses.dataclass(frozen=True)
class Target:
    what: str
    unit: str
    at_most: bool
    value: Optional[float]  # the median; None: could not be measured
    limit: Optional[float]
    ratios: tuple  # value over limit of each repetition in which both were measured

    @property
    def ratio(self):
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def verdict(self):
        """Met or missed is what nearly every repetition says. Where they differ, the machine was too noisy to tell."""
        if not self.ratios:
            return NOT_MEASURED
        good = sum(ratio <= 1 if self.at_most else ratio >= 1 for ratio in self.ratios)
        bad = len(self.ratios) - good
        if min(good, bad) * REPETITIONS_A_DISSENTER > len(self.ratios):
            return UNDECIDABLE
        return MET if good > bad else MISSED


class Comparison:
    """Makes targets of a run's results. Figures are named by (key, name); a limit is one of them times a factor, or a
    number."""

    def __init__(self, results):
        self._results = results

    def _target(self, what, ours, limit, unit, factor, at_most, plus=0):
        values = self._results.of(*ours)
        if isinstance(limit, tuple):
            limits = {repetition: other * factor + plus for repetition, other in self._results.of(*limit).items()}
        else:
            limits = {repetition: limit for repetition in values}
        return Target(what, unit, at_most, statistics.median(values.values()) if values else None,
                      statistics.median(limits.values()) if limits else None,
                      tuple(values[repetition] / limits[repetition] for repetition in values if limits.get(repetition)))

    def at_least(self, what, ours, limit, unit, factor=1.0):
        return self._target(what, ours, limit, unit, factor, at_most=False)

    def at_most(self, what, ours, limit, unit, factor=1.0, plus=0.0):
        return self._target(what, ours, limit, unit, factor, at_most=True, plus=plus)


def bandwidth_targets(compare):
    for size, name in ((65536, "64 KiB"), (1 << 20, "1 MiB")):
        tcp = (f"tcp/qperf-bw/{size}", "gb_per_s")
        floor = (f"floor/memory/{size}", "gb_per_s")
        one_copy = (f"floor/memory-mapped-one-copy/{size}", "gb_per_s")
        for operation in ("write", "read", "send"):
            ours = (f"rocemu/ib_{operation}_bw/{size}", "gb_per_s")
            sharing = (f"rocemu-share-memory/ib_{operation}_bw/{size}", "gb_per_s")
            one_sided = operation != "send"
            what = f"ib_{operation}_bw {name}"
            of_floor = 0.9 if one_sided else 0.85
            yield compare.at_least(f"{what}: {of_floor} of the memory floor", ours, floor, "GB/s", of_floor)
            if one_sided:
                yield compare.at_least(f"{what}: qperf TCP", ours, tcp, "GB/s")
                yield compare.at_least(f"{what}, --share-memory: 0.8 of one copy", sharing, one_copy, "GB/s", 0.8)
            of_tcp = 1.5 if one_sided else 1.3
            yield compare.at_least(f"{what}, --share-memory: {of_tcp} x qperf TCP", sharing, tcp, "GB/s", of_tcp)


def latency_targets(compare):
    floor = ("floor/pingpong", "typical_us")
    typical = ("rocemu/ib_send_lat/8", "typical_us")
    yield compare.at_most("ib_send_lat 8 B: 1.5 x the ping-pong floor", typical, floor, "us", 1.5)
    yield compare.at_most("ib_send_lat 8 B, p99: 3 x typical", ("rocemu/ib_send_lat/8", "p99_us"), typical, "us", 3)
    yield compare.at_most("ib_send_lat 8 B: qperf TCP", typical, ("tcp/qperf-lat/8", "typical_us"), "us")
    yield compare.at_most("ib_write_lat 8 B: 2 x the same floor", ("rocemu/ib_write_lat/8", "typical_us"), floor, "us", 2)
    yield compare.at_most("ib_write_lat 8 B, --share-memory: 1.2 x the same floor",
                          ("rocemu-share-memory/ib_write_lat/8", "typical_us"), floor, "us", 1.2)


def small_message_targets(compare):
    """Asked for on a host whose memory floor is 8 GB/s, and in proportion on others."""
    floor = ("floor/memory/65536", "gb_per_s")
    for system, name, rates in (("rocemu", "", {1: 1.5e6, 16: 2.5e6}),
                                ("rocemu-share-memory", ", --share-memory", {1: 3e6, 16: 5e6})):
        for operation in ("write", "send"):
            for qps, rate in rates.items():
                yield compare.at_least(
                    f"8 B {operation.upper()}, {qps} QP{'s' if qps > 1 else ''}{name}: {rate / 1e6} M/s by 8 GB/s of the memory floor",
                    (f"{system}/ib_{operation}_bw-{qps}qp/8", "messages_per_s"), floor, "/s", rate / 8)


def processor_targets(compare):
    tcp = ("tcp/cpu-iperf3/65536", "cpu_s_per_gb")
    for operation in ("write", "read", "read-events", "send", "send-events"):
        yield compare.at_most(f"processor's time for 64 KiB, {operation}: iperf3's",
                              (f"rocemu/cpu-{operation}/65536", "cpu_s_per_gb"), tcp, "s/GB")


def check_targets(compare):
    yield compare.at_least("ib_write_bw 4 KiB with --check: a third of without", ("check/ib_write_bw/4096", "gb_per_s"),
                           ("no-check/ib_write_bw/4096", "gb_per_s"), "GB/s", 1 / 3)
    yield compare.at_most("ib_send_lat 8 B with --check: 2 us more", ("check/ib_send_lat/8", "typical_us"),
                          ("no-check/ib_send_lat/8", "typical_us"), "us", plus=2)


def busy_targets(compare):
    for beside, name in (("bulk-pairs/1", "1 bulk pair"), ("bulk-pairs/4", "4 bulk pairs"),
                         ("bulk-pairs/16", "16 bulk pairs"), ("compilers/8", "8 compilers")):
        for figure in ("p50", "p99", "worst"):
            ours, tcp = ((f"{system}/round-trip-beside-{beside}", f"{figure}_us") for system in ("rocemu", "tcp"))
            yield compare.at_most(f"round trip beside {name}, {figure}: 2 x TCP", ours, tcp, "us", 2)


def simulator_targets(compare):
    yield compare.at_least("rocemu sim, packets end to end of 128 hosts, a core", ("sim/leaf-spine-128", "packets_per_s"),
                           200_000, "/s")
    yield compare.at_least("rocemu sim, hops of packets, a core", ("sim/leaf-spine-128", "hops_per_s"), 1_000_000, "/s")
    yield compare.at_most("rocemu sim, 1,024 hosts with 16 QPs", ("sim/fat-tree-1024", "gb_of_memory"), 4, "GB")


def all_targets(results):
    compare = Comparison(results)
    yield from bandwidth_targets(compare)
    yield from latency_targets(compare)
    yield from small_message_targets(compare)
    yield from processor_targets(compare)
    yield from check_targets(compare)
    yield from busy_targets(compare)
    yield compare.at_least("ib_write_bw 1 MiB over a veth, by interface: 0.7 of qperf TCP",
                           ("veth-interface/ib_write_bw/1048576", "gb_per_s"), ("veth-tcp/qperf-bw/1048576", "gb_per_s"),
                           "GB/s", 0.7)
    one_pair = ("rocemu/qps/1", "gb_per_s")
    yield compare.at_least("20,000 QPs, 64 of them active: 0.9 of one QP's bandwidth", ("rocemu/qps/20000", "gb_per_s"),
                           one_pair, "GB/s", 0.9)
    yield compare.at_least("64 devices all to all, 4,096 QPs: 0.8 of one pair's", ("rocemu/all-to-all-64/4096", "gb_per_s"),
                           one_pair, "GB/s", 0.8)
    yield compare.at_most("memory of an idle QP beyond its rings", ("rocemu/qps/20000", "bytes_per_qp"), 2048, "bytes")
    yield compare.at_most("registering 1 GiB", ("rocemu/register/1073741824", "us"), 50, "us")
    yield compare.at_least("cmtime -c 1000, its connect step", ("rocemu/connects", "connects_per_s"), 5000, "/s")
    yield compare.at_most("rocemu run -- true", ("rocemu/start-up", "ms"), 120, "ms")
    yield compare.at_most("idle NIC", ("rocemu/idle", "cpu_percent"), 0.3, "% CPU")
    yield from simulator_targets(compare)
