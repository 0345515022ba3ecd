#!/usr/bin/python3 -B
"""rocemu beside what Linux has in its kernel for programs without RDMA hardware, and beside TCP: all four in one virtual machine.

    run_bench.py --bench [--repetitions N] [--only REGEX] [--list] [--table FILE] [--siw FILE]

The machine is qemu's software emulation of two cores, with Debian's kernel and its rdma_rxe: figures are small, and good to be
compared with each other. rxe and siw have a device on a dummy interface and talk to themselves, without a wire; rocemu is two
devices of one NIC. Each repetition measures each row once, so that a busy minute of the host falls on all alike; what is printed are
medians, and the highest and lowest.

--only   rows whose name matches
--table  writes the figures as a table of Markdown
--siw    measures siw, too: the module for the machine's kernel, of which Debian's has none (docs/testing.md)

Needs no root. Exit code 1: something could not be measured; 77: nothing could, and the last line says why."""
import argparse
import contextlib
import os
import re
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import image
from guest import Guest, GuestFailed
from machine_kind import AMD64
from packed_nic import PREFIX, archive
from sides import gid_index, listens_in

SKIPPED = 77
MEASURED_SECONDS = 3
LIMIT_SECONDS = 120
ADDRESS = "192.168.90.1"
INTERFACE = "bench0"
PERFTEST_PORT, QPERF_PORT = 18515, 19765
LARGE_MTU = 4200  # RoCE's path MTU becomes 4096
BULK_BYTES = 65536


class NotMeasured(Exception):
    """What was printed instead of a figure."""


@dataclass(frozen=True)
class What:
    name: str
    unit: str
    program: str  # of perftest
    message_bytes: int
    qperf: str  # TCP's

    def perftest(self):
        return f"{self.program} -F -s {self.message_bytes} -D {MEASURED_SECONDS} -f 0"

    def figure(self, iterations):
        """perftest's own figures are by the processor's cycles, which are no measure of time in an emulated machine. What it
        counts in so many seconds is one."""
        per_second = iterations / MEASURED_SECONDS
        return 1e6 / per_second / 2 if self.unit == "us" else per_second * self.message_bytes / 1e6


ROWS = [
    What("WRITE, 64 KiB", "MB/s", "ib_write_bw", BULK_BYTES, "tcp_bw"),
    What("READ, 64 KiB", "MB/s", "ib_read_bw", BULK_BYTES, "tcp_bw"),
    What("SEND, 64 KiB", "MB/s", "ib_send_bw", BULK_BYTES, "tcp_bw"),
    What("SEND, 8 bytes, half a round trip", "us", "ib_send_lat", 8, "tcp_lat"),
]


def run_client(guest, command):
    """What it printed. It does not outlive this."""
    running = guest.start(command)
    try:
        if running.wait(LIMIT_SECONDS) != 0:
            raise NotMeasured(f"'{command}' ended with {running.code()}: {running.output()}")
        return running.output()
    finally:
        running.stop()


def meet(guest, server, client, port):
    """What the client printed, once the server listened."""
    serving = guest.start(server)
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not listens_in(guest.run("cat /proc/net/tcp /proc/net/tcp6"), port):
            if serving.code() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"the server does not listen: {serving.output()}")
            time.sleep(0.05)
        return run_client(guest, client)
    finally:
        serving.stop()


def perftest_figure(what, text):
    for line in text.splitlines():
        if (found := re.match(rf" *{what.message_bytes} +([0-9]+) ", line)) and int(found[1]) > 0:
            return what.figure(int(found[1]))
    raise NotMeasured(text)


class Rocemu:
    def __init__(self, options=""):
        self.options = options
        self.name = f"rocemu{' ' if options else ''}{options}"

    def measure(self, guest, what):
        command = what.perftest()
        return perftest_figure(what, run_client(
            guest, f"/{PREFIX}/bin/rocemu run {self.options} --server '{command} -d rocemu0' -- {command} -d rocemu1 localhost"))


@contextlib.contextmanager
def kernel_device(guest, module):
    """One on the interface, for as long as it is measured: two on one would be taken for each other."""
    guest.run(f"rdma link add {module}9 type {module} netdev {INTERFACE}")
    try:
        yield f"{module}9"
    finally:
        guest.run(f"rdma link delete {module}9")


class Rxe:
    name = "rxe"

    def measure(self, guest, what):
        with kernel_device(guest, "rxe") as device:
            devinfo = guest.run(f"ibv_devinfo -v -d {device}")
            gid = gid_index(devinfo, ADDRESS)
            if gid is None:
                raise NotMeasured(f"no GID for {ADDRESS}: {devinfo}")
            command = f"{what.perftest()} -d {device} -x {gid}"
            return perftest_figure(what, meet(guest, command, f"{command} {ADDRESS}", PERFTEST_PORT))


class Siw:
    """iWARP, so that the connection manager makes its connections, whose listeners are in no table of the system's."""

    name = "siw"

    def measure(self, guest, what):
        command = f"{what.perftest()} -R"
        with kernel_device(guest, "siw"):
            serving = guest.start(command)
            try:
                return perftest_figure(what, self.client_output(guest, serving, f"{command} {ADDRESS}"))
            finally:
                serving.stop()

    def client_output(self, guest, serving, command):
        """It is refused as long as the server is not there yet."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                return run_client(guest, command)
            except NotMeasured:
                if serving.code() is not None or time.monotonic() > deadline:
                    raise


class Tcp:
    name = "TCP (qperf)"

    def measure(self, guest, what):
        qperf = f"qperf -lp {QPERF_PORT}"
        client = f"{qperf} -u -t {MEASURED_SECONDS} -m {what.message_bytes} {ADDRESS} {what.qperf}"
        text = meet(guest, qperf, client, QPERF_PORT)
        found = re.search(r"= +([0-9.,]+) (\S+)", text)
        units = {"GB/sec": 1e3, "MB/sec": 1, "KB/sec": 1e-3, "bytes/sec": 1e-6, "us": 1, "ms": 1e3, "ns": 1e-3}
        if not found or found[2] not in units:
            raise NotMeasured(text)
        return float(found[1].replace(",", "")) * units[found[2]]


def skip(why):
    print(f"SKIP: nothing was measured beside rxe and siw: {why}", flush=True)
    sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(prog="scripts/interop.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", action="store_true", required=True)
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("--siw", metavar="FILE", type=Path)
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions: at least 1")
    if options.siw and not options.siw.is_file():
        parser.error(f"--siw: there is no file {options.siw}")
    return options


def set_up(guest, rocemu, siw):
    """Returns the systems that there are."""
    guest.unpack(archive(rocemu, guest.libraries()))
    guest.run("modprobe -a dummy libcrc32c rdma_rxe")
    systems = [Rocemu(), Rocemu("--share-memory"), Rxe()]
    if siw:
        guest.push(siw)
        guest.run(f"insmod /usr/local/bin/{siw.name}")
        systems.append(Siw())
    guest.run(f"ip link add {INTERFACE} type dummy; ip link set {INTERFACE} mtu {LARGE_MTU} up; "
              f"ip address add {ADDRESS}/24 dev {INTERFACE}")
    return [*systems, Tcp()]


def shown(figures, unit):
    if not figures:
        return "not measured"
    digits = 1 if unit == "us" else 0
    return f"{statistics.median(figures):.{digits}f} ({min(figures):.{digits}f} to {max(figures):.{digits}f})"


def table(rows, systems, results):
    yield "| | " + " | ".join(system.name for system in systems) + " |"
    yield "|---|" + "---|" * len(systems)
    for what in rows:
        cells = (shown(results[what.name, system.name], what.unit) for system in systems)
        yield f"| {what.name}, {what.unit} | " + " | ".join(cells) + " |"


def measure(guest, rows, systems, repetitions):
    """The figures by row and system, and what went wrong."""
    results = {(what.name, system.name): [] for what in rows for system in systems}
    failures = []
    for repetition in range(repetitions):
        for what in rows:
            for system in systems:
                try:
                    figure = system.measure(guest, what)
                    results[what.name, system.name].append(figure)
                    print(f"[{repetition + 1}/{repetitions}] {what.name}: {system.name} {figure:.1f} {what.unit}", flush=True)
                except (GuestFailed, NotMeasured, OSError) as why:
                    failures.append(f"{what.name}: {system.name}: {why}")
                    print(f"FAILED {failures[-1]}", flush=True)
    return results, failures


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = parse()
    rows = [what for what in ROWS if re.search(options.only, what.name)]
    if not rows:
        print(f"interop.sh: no row matches '{options.only}'; --list prints them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(what.name for what in rows))
        return 0
    if shutil.which(AMD64.qemu) is None:
        skip(f"{AMD64.qemu} is missing (Debian package {AMD64.qemu_package})")
    try:
        folder = image.get()
    except image.ImageUnavailable as why:
        skip(f"no image of the virtual machine: {why}")
    with Guest(folder, [], {"name": "bench"}, memory="2G") as guest:
        print(f"the machine is up after {guest.boot_seconds:.1f} s: {guest.run('uname -srm').strip()}", flush=True)
        systems = set_up(guest, os.environ.get("ROCEMU", "rocemu"), options.siw)
        results, failures = measure(guest, rows, systems, options.repetitions)
    text = "\n".join(table(rows, systems, results))
    print(text)
    if options.table:
        Path(options.table).write_text(text + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
