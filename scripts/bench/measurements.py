"""Everything bench.sh can measure. A measurement is one run of something that gives figures by name.

To add a row: write a function that returns a dictionary of figures, and name it in all_measurements()."""
import contextlib
import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Callable

import busy
import htsim
import lab
import simulators
import veth

BANDWIDTH_SIZES = [8, 64, 512, 4096, 16384, 65536, 262144, 1 << 20, 8 << 20]
LATENCY_SIZES = [8, 64, 512, 4096, 16384, 65536]
TARGET_BANDWIDTH_SIZES = [65536, 1 << 20]
OPERATIONS = ["write", "read", "send"]
MIB = 1 << 20
CONNECTIONS = 1000
MANY_DEVICES, MANY_QPS = 64, 4096
CPU_BYTES = 8_000_000_000
TURNS = [
    ("busy", r"/round-trip-beside-(.*)$"),
    ("veth", r"veth.*(bw|frames|lat)"),
    ("latency", r"(?:lat|pingpong)(?:/8$|$|-)"),
    ("processor", r"/cpu-"),
    ("messages a second", r"qp/8$"),
    ("bandwidth", r"(?:bw|memory|memory-icrc|memory-icrc-mapped|memory-mapped-one-copy|tag_bw|iperf3)/(\d+)$"),
    ("QPs", r"/qps|/all-to-all"),
]


@dataclasses.dataclass(frozen=True)
class Measurement:
    key: str  # SYSTEM/WHAT[/SIZE]
    run: Callable[[], dict]  # figures by name; a name ends in its unit
    quick: bool = True  # part of --quick

    @property
    def turn(self):
        """Those of one turn are compared with each other, and are measured one after the other."""
        for turn, pattern in TURNS:
            if found := re.search(pattern, self.key):
                return (turn, *found.groups())
        return self.key


def iterations(size):
    return int(max(1000, min(200_000, 2_000_000_000 // size)))


def verbs_measurements(build, system, devices, environment):
    """perftest between two devices: the same for rocemu and for any other RDMA device."""

    def bandwidth(operation, size, count=None, extra=()):
        arguments = ["-s", size, "-n", count or iterations(size), *extra]
        row = lab.perftest(f"ib_{operation}_bw", arguments, devices, environment)
        return {"gb_per_s": row[3] * MIB / 1e9, "messages_per_s": row[4] * 1e6}

    def latency(operation, size):
        row = lab.perftest(f"ib_{operation}_lat", ["-s", size, "-n", 20_000 if size < 16384 else 5_000], devices,
                           environment)
        return {"typical_us": row[4], "p99_us": row[7]}

    for operation in OPERATIONS:
        for size in BANDWIDTH_SIZES:
            yield Measurement(f"{system}/ib_{operation}_bw/{size}", lambda o=operation, s=size: bandwidth(o, s),
                              quick=size in TARGET_BANDWIDTH_SIZES)
        for size in LATENCY_SIZES:
            yield Measurement(f"{system}/ib_{operation}_lat/{size}", lambda o=operation, s=size: latency(o, s),
                              quick=size == 8)
    for operation in ("write", "send"):
        yield Measurement(f"{system}/ib_{operation}_bw-1qp/8", lambda o=operation: bandwidth(o, 8, 500_000))
        yield Measurement(f"{system}/ib_{operation}_bw-16qp/8", lambda o=operation: bandwidth(o, 8, 50_000, ["-q", 16]))
    for size in (4096, 1 << 30):
        yield Measurement(
            f"{system}/register/{size}",
            lambda s=size: {"us": float(lab.output_of([build.bench / "register_time", devices[0], s], environment))})


def nic_measurements(nic):
    """What only a NIC that is a process has."""

    def qps(count):
        with lab.Nic(nic.build) as fresh:  # one that has kept no memory of earlier QPs
            return qps_of(fresh, count)

    def qps_of(own, count):
        before = lab.private_bytes(own.pid())
        command = [nic.build.bench / "qp_scale", "--qps", count, "--active", min(count, 64), "--seconds", 1]
        with subprocess.Popen([str(part) for part in command], env=own.environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            connected = re.match(r"connected (\S+)", program.stdout.readline())
            if not connected:
                raise lab.MeasurementFailed(f"qp_scale with {count} QPs did not connect them")
            grown = lab.private_bytes(own.pid()) - before
            rest, _ = program.communicate("\n", timeout=lab.LIMIT_SECONDS)
        # Both ends of each connection are QPs of this NIC.
        return {"gb_per_s": float(rest), "connect_s": float(connected[1]), "bytes_per_qp": grown / (2 * count)}

    def turns(how, program, events):
        with lab.Nic(nic.build, f'parallel = "{how}"') as own:
            row = lab.perftest(program, ["-s", 65536, "-n", iterations(65536), *events], ("rocemu0", "rocemu1"),
                               own.environment)
        return {"gb_per_s": row[3] * MIB / 1e9}

    def pairs(how, count, of_devices):
        """So many programs, which have a pair of devices each, or all have the first pair."""
        devices = ("--devices", str(2 * of_devices))
        with lab.Nic(nic.build, f'parallel = "{how}"', devices) as own, contextlib.ExitStack() as stack:
            programs = [stack.enter_context(subprocess.Popen(
                [str(nic.build.bench / "qp_scale"), "--from", f"rocemu{2 * (i % of_devices)}",
                 "--to", f"rocemu{2 * (i % of_devices) + 1}"],
                env=own.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) for i in range(count)]
            if not all(program.stdout.readline().startswith("connected") for program in programs):
                raise lab.MeasurementFailed("qp_scale did not connect")
            for program in programs:
                program.stdin.write("\n")
                program.stdin.flush()
            return {"gb_per_s": sum(float(program.communicate(timeout=lab.LIMIT_SECONDS)[0]) for program in programs)}

    def start_up():
        start = time.monotonic()
        lab.output_of([nic.build.rocemu, "run", "--", "true"])
        return {"ms": (time.monotonic() - start) * 1e3}

    def idle():
        pid, seconds = nic.pid(), 5
        time.sleep(0.5)
        before = lab.cpu_seconds(pid)
        time.sleep(seconds)
        return {"cpu_percent": (lab.cpu_seconds(pid) - before) / seconds * 100}

    def cold():
        # Each QP has a buffer of its own: 1 GiB in all, and each message from and to another MiB of it.
        row = lab.perftest("ib_write_bw", ["-s", MIB, "-q", 1024, "-t", 1, "-n", 5], ("rocemu0", "rocemu1"),
                           nic.environment)
        return {"gb_per_s": row[3] * MIB / 1e9}

    def processor(operation, *options):
        """What both programs and the NIC take for a gigabyte, by programs that poll or, with -e, sleep until an event."""
        size, count = 65536, CPU_BYTES // 65536
        with lab.ProcessorTime(nic.pid()) as used:
            lab.perftest(f"ib_{operation}_bw", ["-s", size, "-n", count, *options], ("rocemu0", "rocemu1"), nic.environment)
        return {"cpu_s_per_gb": used.seconds / (size * count / 1e9)}

    def all_to_all():
        with lab.Nic(nic.build, options=("--devices", str(MANY_DEVICES))) as own:
            text = lab.output_of([nic.build.bench / "qp_scale", "--devices", MANY_DEVICES, "--qps", MANY_QPS, "--active",
                                  MANY_QPS, "--seconds", 1], own.environment)
        return {"gb_per_s": float(text.split()[-1])}

    def connects():
        server = lab.End("server", ["cmtime", "-b", "10.77.0.2", "-c", str(CONNECTIONS)], nic.environment)
        try:
            lab.wait_until("cmtime listens", lambda: nic.status()["connection_management"]["listeners"])
            steps = lab.output_of(["cmtime", "-b", "10.77.0.1", "-s", "10.77.0.2", "-c", CONNECTIONS], nic.environment)
        finally:
            server.kill()
        # Of each step, the milliseconds that it took for all connections.
        total_ms = {step.strip(): float(ms) for step, ms in re.findall(r"^([a-z ]+): +([0-9.]+) ", steps, re.M)}
        return {"connects_per_s": CONNECTIONS * 1e3 / total_ms["connect"],
                "whole_lives_per_s": CONNECTIONS * 1e3 / sum(total_ms.values())}

    for count in (1, 16, 256, 4096, 20_000):
        yield Measurement(f"rocemu/qps/{count}", lambda c=count: qps(c), quick=count in (1, 20_000))
    for how in ("never", "auto"):
        yield Measurement(f"rocemu-parallel-{how}/ib_write_bw/65536", lambda h=how: turns(h, "ib_write_bw", []))
        yield Measurement(f"rocemu-parallel-{how}/ib_send_bw-events/65536",
                          lambda h=how: turns(h, "ib_send_bw", ["-e"]))
    for count in (1, 2, 4, 8):
        for how in ("never", "auto"):
            yield Measurement(f"rocemu-parallel-{how}/pairs-{count}/65536", lambda h=how, c=count: pairs(h, c, c), quick=False)
            if count > 1:
                yield Measurement(f"rocemu-parallel-{how}/programs-{count}/65536", lambda h=how, c=count: pairs(h, c, 1),
                                  quick=False)
    yield Measurement(f"rocemu/all-to-all-{MANY_DEVICES}/{MANY_QPS}", all_to_all)
    for operation in OPERATIONS:
        yield Measurement(f"rocemu/cpu-{operation}/65536", lambda o=operation: processor(o))
    for operation in ("read", "send"):  # ib_write_bw has no -e
        yield Measurement(f"rocemu/cpu-{operation}-events/65536", lambda o=operation: processor(o, "-e"))
    yield Measurement("rocemu/connects", connects)
    yield Measurement("rocemu/start-up", start_up)
    yield Measurement("rocemu/idle", idle)
    yield Measurement(f"rocemu/ib_write_bw-cold/{MIB}", cold, quick=False)


def checked_measurements(build):
    """The same programs with and without --check."""

    def run(program, arguments, options):
        with lab.Nic(build, options=options) as own:
            return lab.perftest(program, arguments, ("rocemu0", "rocemu1"), own.environment)

    # The NIC beside one of the programs or on a processor of its own: on two of them that is a difference of 6 us,
    # which the scheduler makes for a whole run, and which is not to be compared with what a check costs.
    def run_apart(program, arguments, options):
        first, *others = sorted(os.sched_getaffinity(0))
        with contextlib.ExitStack() as stack:
            with lab.on_processors([first]):
                own = stack.enter_context(lab.Nic(build, options=options))
            with lab.on_processors(others or [first]):
                return lab.perftest(program, arguments, ("rocemu0", "rocemu1"), own.environment)

    for system, how in (("no-check", ()), ("check", ("--check",))):
        yield Measurement(f"{system}/ib_write_bw/4096", lambda h=how: {
            "gb_per_s": run("ib_write_bw", ["-s", 4096, "-n", 100_000], h)[3] * MIB / 1e9})
        yield Measurement(f"{system}/ib_send_lat/8", lambda h=how: {
            "typical_us": run_apart("ib_send_lat", ["-s", 8, "-n", 20_000], h)[4]})


def floor_measurements(build):
    def memory(*arguments):
        return {"gb_per_s": float(lab.output_of([build.bench / "memory_floor", *arguments]))}

    def pingpong(*arguments):
        typical, p99 = map(float, lab.output_of([build.bench / "pingpong_floor", *arguments]).split())
        return {"typical_us": typical, "p99_us": p99}

    for size in TARGET_BANDWIDTH_SIZES:
        yield Measurement(f"floor/memory/{size}", lambda s=size: memory("--message-bytes", s))
        yield Measurement(f"floor/memory-icrc/{size}", lambda s=size: memory("--icrc", "--message-bytes", s))
        yield Measurement(f"floor/memory-icrc-mapped/{size}",
                          lambda s=size: memory("--icrc", "--mapped", "--message-bytes", s), quick=False)
        yield Measurement(f"floor/memory-mapped-one-copy/{size}",
                          lambda s=size: memory("--mapped", "--one-copy", "--message-bytes", s))
    yield Measurement(f"floor/memory-icrc-cold/{MIB}",
                      lambda: memory("--icrc", "--message-bytes", MIB, "--region-bytes", 1 << 30), quick=False)
    for programs in (1, 4):
        for threads in (1, 2, 4):
            if threads <= min(os.cpu_count(), programs):
                yield Measurement(f"floor/moves-{programs}-programs-{threads}-threads/32768", lambda p=programs, t=threads: {
                    "gb_per_s": float(lab.output_of([build.bench / "shared_moves", "--programs", p, "--threads", t]))},
                                  quick=False)
    yield Measurement("floor/pingpong", pingpong)
    yield Measurement("floor/pingpong-never-yield", lambda: pingpong("--never-yield"), quick=False)


UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def qperf_figures(text):
    found = re.search(r"(bw|latency) += +([0-9.]+) (ns|us|ms|KB|MB|GB)", text)
    if not found:
        raise lab.MeasurementFailed(f"qperf printed: {text}")
    value = float(found[2]) * UNITS[found[3]]
    return {"gb_per_s": value / 1e9} if found[1] == "bw" else {"typical_us": value}


def other_measurements():
    """What a user would have instead, over the loopback interface."""

    def qperf(test, size):
        port = lab.choose_port()
        text = lab.server_and_client(["qperf", "-lp", port],
                                     ["qperf", "-lp", port, "-t", 1, "-m", size, "127.0.0.1", test], port)
        return qperf_figures(text)

    def iperf3(size, figure):
        port = lab.choose_port()
        text = lab.server_and_client(["iperf3", "-s", "-1", "-p", port],
                                     ["iperf3", "-c", "127.0.0.1", "-p", port, "-l", size, "-t", 1, "-J"], port)
        end = json.loads(text)["end"]
        received, used = end["sum_received"], end["cpu_utilization_percent"]
        gb = received["bytes"] / 1e9
        figures = {"gb_per_s": gb / received["seconds"],
                   "cpu_s_per_gb": (used["host_total"] + used["remote_total"]) / 100 * received["seconds"] / gb}
        return {figure: figures[figure]}

    # What UCX has between processes of one machine, and TCP.
    ucx_transports = {"shm": ["UCX_TLS=posix,sysv,cma"], "tcp": ["UCX_TLS=tcp", "UCX_NET_DEVICES=lo"]}

    def ucx(transport, test, size, count):
        port = lab.choose_port()
        common = ["env", *ucx_transports[transport], "UCX_WARN_UNUSED_ENV_VARS=n", "ucx_perftest", "-p", port]
        text = lab.server_and_client(
            common, [*common, "-t", test, "-s", size, "-n", count, "-f", "127.0.0.1"], port)
        last = [line.split() for line in text.splitlines() if re.match(r"^ *(?:Final:)? *[0-9]+ ", line)][-1]
        numbers = [float(cell) for cell in last if re.match(r"^[0-9.]+$", cell)]
        # iterations, 50 % latency, average, overall latency, average MB/s, overall MB/s, messages …
        return {"gb_per_s": numbers[5] * MIB / 1e9} if test.endswith("bw") else {"typical_us": numbers[1]}

    def libfabric(size, count):
        port = lab.choose_port()
        common = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-S", size, "-I", count]
        text = lab.server_and_client([*common, "-B", port], [*common, "-P", port, "127.0.0.1"], port)
        row = [line.split() for line in text.splitlines() if re.match(r"^[0-9]", line)][-1]
        return {"gb_per_s": float(row[5]) / 1e3, "typical_us": float(row[6])}

    if shutil.which("qperf"):
        for size in BANDWIDTH_SIZES:
            yield Measurement(f"tcp/qperf-bw/{size}", lambda s=size: qperf("tcp_bw", s),
                              quick=size in TARGET_BANDWIDTH_SIZES)
        for size in LATENCY_SIZES:
            yield Measurement(f"tcp/qperf-lat/{size}", lambda s=size: qperf("tcp_lat", s), quick=size == 8)
    if shutil.which("iperf3"):
        for size in TARGET_BANDWIDTH_SIZES:
            yield Measurement(f"tcp/iperf3/{size}", lambda s=size: iperf3(s, "gb_per_s"))
        yield Measurement("tcp/cpu-iperf3/65536", lambda: iperf3(65536, "cpu_s_per_gb"))
    if shutil.which("ucx_perftest"):
        for transport in ucx_transports:
            for size in TARGET_BANDWIDTH_SIZES:
                yield Measurement(f"ucx-{transport}/tag_bw/{size}",
                                  lambda t=transport, s=size: ucx(t, "tag_bw", s, iterations(s) // 4), quick=size == 65536)
            yield Measurement(f"ucx-{transport}/tag_lat/8", lambda t=transport: ucx(t, "tag_lat", 8, 20_000))
    if shutil.which("fi_pingpong"):
        yield Measurement("libfabric-tcp/pingpong/65536", lambda: libfabric(65536, 5_000))
        yield Measurement("libfabric-tcp/pingpong/8", lambda: libfabric(8, 20_000))


def busy_measurements(nic):
    """Round trips of a small message beside bulk by the same means, and beside compilers, over the NIC and over TCP."""

    def round_trips(arguments, load):
        return busy.round_trips(nic.build, arguments, nic.environment, load)

    for count in (1, 4, 16):
        yield Measurement(f"rocemu/round-trip-beside-bulk-pairs/{count}",
                          lambda c=count: round_trips([], busy.verbs_bulk(nic.build, nic.environment, c)))
        if shutil.which("qperf"):
            yield Measurement(f"tcp/round-trip-beside-bulk-pairs/{count}",
                              lambda c=count: round_trips(["--tcp"], lambda: busy.tcp_bulk(c)))
    if (load := busy.compilers(8)) is not None:
        yield Measurement("rocemu/round-trip-beside-compilers/8", lambda: round_trips([], load))
        yield Measurement("tcp/round-trip-beside-compilers/8", lambda: round_trips(["--tcp"], load))


def veth_measurements(build):
    """Between two hosts: the NIC by interface and by UDP sockets, the frames alone, and TCP over the same veth."""
    seconds = 2

    def frames():
        with veth.Hosts() as hosts:
            pump = [build.bench / "frame_pump"]
            text = hosts.pair([*pump, "receive", veth.INTERFACE, seconds + 1],
                              [*pump, "send", veth.INTERFACE, veth.ADDRESSES[1], veth.ADDRESSES[0], hosts.mac(0),
                               seconds], None, ready="ready")
        return {"gb_per_s": float(text.split()[-1])}

    def bandwidth(kind):
        with veth.Hosts() as hosts, veth.Nics(build, hosts, kind) as nics:
            row = nics.perftest("ib_write_bw", ["-s", MIB, "-n", iterations(MIB)])
        return {"gb_per_s": row[3] * MIB / 1e9}

    def latency(kind):
        with veth.Hosts() as hosts, veth.Nics(build, hosts, kind) as nics:
            row = nics.perftest("ib_send_lat", ["-s", 8, "-n", 5000])
        return {"typical_us": row[4], "p99_us": row[7]}

    def tcp(test, size):
        port = lab.choose_port()
        with veth.Hosts() as hosts:
            return qperf_figures(hosts.pair(
                ["qperf", "-lp", port], ["qperf", "-lp", port, "-t", seconds, "-m", size, veth.ADDRESSES[0], test], port))

    yield Measurement("floor/veth-frames", frames)
    for kind in ("interface", "udp"):
        yield Measurement(f"veth-{kind}/ib_write_bw/{MIB}", lambda k=kind: bandwidth(k))
        yield Measurement(f"veth-{kind}/ib_send_lat/8", lambda k=kind: latency(k))
    if shutil.which("qperf"):
        yield Measurement(f"veth-tcp/qperf-bw/{MIB}", lambda: tcp("tcp_bw", MIB))
        yield Measurement("veth-tcp/qperf-lat/8", lambda: tcp("tcp_lat", 8))


def kernel_devices():
    """Linux rxe or siw devices of this machine, if any; see docs/performance.md."""
    for path in sorted(Path("/sys/class/infiniband").glob("*")):
        if path.name.startswith(("rxe", "siw")):
            yield path.name


def simulator_measurements(build, htsim_checkout):
    """By a core's own time: other work on the machine is not counted, though it is felt."""
    yield Measurement("sim/leaf-spine-128", lambda: simulators.experiment(build, "leaf_spine"))
    yield Measurement("sim/fat-tree-1024", lambda: simulators.experiment(build, "fat_tree"))
    yield Measurement("sim-ns3/leaf-spine-128", lambda: simulators.ns3(build))
    yield Measurement("sim/load-128", lambda: htsim.rocemu_load(build))
    yield Measurement("sim-htsim-ndp/load-128", lambda: htsim.htsim_load(htsim_checkout))
    yield Measurement("sim/permutation-128", lambda: htsim.rocemu_permutation(build))
    yield Measurement("sim-htsim-roce/permutation-128", lambda: htsim.htsim_permutation(htsim_checkout))


def all_measurements(nic, htsim_checkout=None):
    yield from verbs_measurements(nic.build, "rocemu", ("rocemu0", "rocemu1"), nic.environment)
    sharing = {**nic.environment, "ROCEMU_SHARE_MEMORY": "1"}  # as by rocemu exec --share-memory
    for measurement in verbs_measurements(nic.build, "rocemu-share-memory", ("rocemu0", "rocemu1"), sharing):
        if "/register/" not in measurement.key:  # the memory is made shared the first time alone
            yield measurement
    yield from nic_measurements(nic)
    yield from checked_measurements(nic.build)
    yield from floor_measurements(nic.build)
    yield from other_measurements()
    yield from busy_measurements(nic)
    yield from veth_measurements(nic.build)
    yield from simulator_measurements(nic.build, htsim_checkout)
    for device in kernel_devices():
        yield from verbs_measurements(nic.build, f"kernel-{device}", (device, device), None)


class Results:
    """Figures by measurement, of all repetitions."""

    def __init__(self):
        self._values = {}  # key → figure → repetition → value
        self.failures = {}  # key → text of the first
        self.absent = {}  # key → why it could not be measured, and need not be

    def add(self, key, figures, repetition):
        for name, value in figures.items():
            self._values.setdefault(key, {}).setdefault(name, {})[repetition] = value

    def all(self):
        """Triples of key, figure, and the values of all repetitions."""
        for key, figures in self._values.items():
            for name, values in figures.items():
                yield key, name, list(values.values())

    def of(self, key, name):
        """Values by repetition; empty where nothing was measured."""
        return self._values.get(key, {}).get(name, {})

    def median(self, key, name):
        """None where nothing was measured."""
        found = self.of(key, name)
        return statistics.median(found.values()) if found else None
