"""What the project holds itself to, each with the figures of one run that it compares."""
import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Target:
    what: str
    value: Optional[float]  # None: could not be measured
    limit: Optional[float]
    unit: str
    at_most: bool

    @property
    def met(self):
        if self.value is None or self.limit is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def scaled(value, factor):
    return None if value is None else value * factor


def at_least(what, value, limit, unit):
    return Target(what, value, limit, unit, at_most=False)


def at_most(what, value, limit, unit):
    return Target(what, value, limit, unit, at_most=True)


def data_path_targets(results, system, suffix):
    median = results.median
    for size, name in ((65536, "64 KiB"), (1 << 20, "1 MiB")):
        floor = median(f"floor/memory-icrc/{size}", "gb_per_s")
        tcp = median(f"tcp/qperf-bw/{size}", "gb_per_s")
        for operation in ("write", "read", "send"):
            ours = median(f"{system}/ib_{operation}_bw/{size}", "gb_per_s")
            yield at_least(f"ib_{operation}_bw {name}{suffix}: 0.75 of the ICRC memory floor", ours,
                           scaled(floor, 0.75), "GB/s")
            yield at_least(f"ib_{operation}_bw {name}{suffix}: 1.5 x qperf TCP", ours, scaled(tcp, 1.5), "GB/s")
    pingpong = median("floor/pingpong", "typical_us")
    send = median(f"{system}/ib_send_lat/8", "typical_us")
    yield at_most(f"ib_send_lat 8 B{suffix}: 2 x half the ping-pong floor's round trip", send,
                  scaled(pingpong, 2), "us")
    yield at_most(f"ib_send_lat 8 B{suffix}: below qperf TCP", send, median("tcp/qperf-lat/8", "typical_us"), "us")
    yield at_most(f"ib_send_lat 8 B, p99{suffix}: 4 x typical",
                  median(f"{system}/ib_send_lat/8", "p99_us"), scaled(send, 4), "us")
    yield at_most(f"ib_write_lat 8 B{suffix}: 3 x the same floor", median(f"{system}/ib_write_lat/8", "typical_us"),
                  scaled(pingpong, 3), "us")
    yield at_least(f"8 B writes, 1 QP{suffix}",
                   scaled(median(f"{system}/ib_write_bw-1qp/8", "messages_per_s"), 1e-6), 1.5, "M/s")
    yield at_least(f"8 B writes, 16 QPs{suffix}",
                   scaled(median(f"{system}/ib_write_bw-16qp/8", "messages_per_s"), 1e-6), 2.5, "M/s")


def check_targets(results):
    bandwidth, latency = "ib_write_bw/4096", "ib_send_lat/8"
    plain = results.median(f"no-check/{bandwidth}", "gb_per_s")
    yield at_least("ib_write_bw 4 KiB with --check: a third of without", results.median(f"check/{bandwidth}", "gb_per_s"),
                   scaled(plain, 1 / 3), "GB/s")
    plain = results.median(f"no-check/{latency}", "typical_us")
    yield at_most("ib_send_lat 8 B with --check: 2 us more", results.median(f"check/{latency}", "typical_us"),
                  None if plain is None else plain + 2, "us")


def busy_targets(results):
    for beside, name in (("bulk-pairs/1", "1 bulk pair"), ("bulk-pairs/4", "4 bulk pairs"),
                         ("bulk-pairs/16", "16 bulk pairs"), ("compilers/8", "8 compilers")):
        for figure in ("p50", "p99", "worst"):
            ours, tcp = (results.median(f"{system}/round-trip-beside-{beside}", f"{figure}_us")
                         for system in ("rocemu", "tcp"))
            yield at_most(f"round trip beside {name}, {figure}: 2 x TCP", ours, scaled(tcp, 2), "us")


def all_targets(results):
    median = results.median
    for system, suffix in (("rocemu", ""), ("rocemu-share-memory", ", --share-memory")):
        yield from data_path_targets(results, system, suffix)
    yield from check_targets(results)
    yield from busy_targets(results)
    frames = median("floor/veth-frames", "gb_per_s")
    by_interface = median("veth-interface/ib_write_bw/1048576", "gb_per_s")
    yield at_least("ib_write_bw over veth: 0.7 of what af_packet moves", by_interface, scaled(frames, 0.7), "GB/s")
    yield at_least("ib_write_bw over veth: Linux rxe's", by_interface, 1.8, "GB/s")
    yield at_least("20,000 QPs, 64 of them active: 0.9 of one QP's bandwidth",
                   median("rocemu/qps/20000", "gb_per_s"), scaled(median("rocemu/qps/1", "gb_per_s"), 0.9), "GB/s")
    yield at_most("memory of an idle QP beyond its rings", median("rocemu/qps/20000", "bytes_per_qp"), 2048, "bytes")
    yield at_most("registering 1 GiB", median("rocemu/register/1073741824", "us"), 50, "us")
    yield at_least("cmtime -c 1000, its connect step", median("rocemu/connects", "connects_per_s"), 5000, "/s")
    yield at_most("rocemu run -- true", median("rocemu/start-up", "ms"), 250, "ms")
    yield at_least("rocemu sim, packets end to end of 128 hosts, a core",
                   median("sim/leaf-spine-128", "packets_per_s"), 200_000, "/s")
    yield at_least("rocemu sim, hops of packets, a core", median("sim/leaf-spine-128", "hops_per_s"), 1_000_000, "/s")
    yield at_most("rocemu sim, 1,024 hosts with 16 QPs", median("sim/fat-tree-1024", "gb_of_memory"), 4, "GB")
    yield at_most("idle NIC", median("rocemu/idle", "cpu_percent"), 0.3, "% CPU")
