#!/usr/bin/python3 -B
"""The NIC against Linux's Soft RoCE (rdma_rxe) in a virtual machine: unmodified programs, each side as server and as
client, and what both ends see of errors, compared with what two rxe see.

    run.py [--user] [--short] [--only REGEX] [--port interface|udp|vlan] [--list] [--verbose] [--table FILE]
    run.py [--user] --scripts FOLDER [--table FILE]

--user   as an ordinary user without any capability, in a user namespace (started by root)
--short  a few rows (a minute or two for each port); otherwise all of them (some 20 minutes)
--table  writes a table in Markdown
--scripts  plays the scripts of a folder (docs/scripts.md) against rxe, instead of all this; AGENT names rocemu-script-agent

ROCEMU and SCENARIO name the rocemu command and the program interop_scenario. Everything happens in a network
namespace made for it, on a tap between the NIC and qemu; root is not needed where users may make namespaces.
Exit code 77: it could not be run here; the last line says why."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import image
import script_table
from guest import QEMU, Guest, GuestFailed
from rows import LARGE_MTU, ROWS, SHORT_SCENARIOS, SMALL_MTU
from guest_nic import VlanRocemu, VlanRxe
from sides import Rocemu, Rxe, gid_index

SKIPPED = 77
TAP = "wire0"
HOST = {4: "192.168.77.1", 6: "fd77::1"}
GUEST = {4: "192.168.77.2", 6: "fd77::2"}
LOSS = "loss=1%"
SCENARIO_SECONDS = 120
READY_SECONDS = 30
SCENARIO_PORT = 7471
# Why a row is run again, what it says then, and how often that may be. perftest's server with -R listens twice, and in
# between refuses who comes; its client then uses what it has freed, and dies. rping's server ends with its connection:
# when the DREQ of a client on Linux is lost, it waits for ever, since Linux repeats none whose id is destroyed meanwhile
# (cm_destroy_id), which rping does at once. rocemu does, so that this cannot be with rxe as the server.
AGAIN = {r"retry counter exceeded|[Ss]tatus 12": ("retries exceeded at first", 1),
         r"RDMA_CM_EVENT_REJECTED; error: 8": ("refused at first", 9)}
AGAIN_WITH_LOSS = {r"^the server did not end\n---- .*\brping -s -a (%s) " % "|".join(map(re.escape, HOST.values())):
                   ("the client's DREQ was lost at first", 1)}
# What may not be counted, whatever the row does; "complaints" are those of rxe in the kernel's log, of ICRCs too.
RXE_NEVER = ["complaints"]
ROCEMU_NEVER = ["rx_icrc_errors", "rx_malformed", "port_dropped_refused_by_kernel", "port_dropped_malformed"]
# What tells of packets that were lost; only where loss was set.
RXE_LOST = ["out_of_seq_request", "rcvd_seq_err"]
ROCEMU_LOST = ["out_of_sequence", "sequence_naks_received"]
# What tells of packets sent twice. An end that waited too long for its core does so without loss.
RXE_AGAIN = ["duplicate_request", "completer_retry_err"]
ROCEMU_AGAIN = ["retransmitted_frames", "duplicate_requests"]
# By scenario and responder: where IBTA (vol 1, 9.9.6.1 and table 58) wants something else than rxe does.
DIFFERENT = {
    ("send-too-long", "rocemu"): [
        "responder: local length error; state 6; untouched",
        "requester: remote invalid request error; Work Request Flushed Error; state 6; untouched"],
}
OTHER = {"rocemu": "rxe", "rxe": "rocemu"}


def skip(why):
    print(f"SKIP: nothing was run against Linux rxe: {why}", flush=True)
    sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--port", choices=["interface", "udp", "vlan"], action="append")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("--scripts", metavar="FOLDER")
    parser.add_argument("--image", help=argparse.SUPPRESS)  # set inside: the work in the namespaces
    return parser.parse_args()


# ---- outside: image and namespaces ----

def outside(options):
    for program, package in ((QEMU, "qemu-system-x86"), ("ip", "iproute2"), ("unshare", "util-linux"),
                             ("ib_write_bw", "perftest"), ("rping", "rdmacm-utils")):
        if shutil.which(program) is None:
            skip(f"{program} is missing (Debian package {package})")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun is not there or not writable, so there is no tap to link the virtual machine by")
    if options.user and os.getuid() != 0:
        skip("--user is for root; everything runs as an ordinary user already")
    try:
        folder = image.get()
    except image.ImageUnavailable as why:
        skip(f"no image of the virtual machine: {why}")
    # Whatever is started in the namespaces ends with them, and they with this process.
    setpriv = ["setpriv", "--pdeathsig", "KILL"]
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if options.user:
        setpriv += ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                    "--no-new-privs"]
    if options.user or os.getuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if subprocess.run([*setpriv, "--", *unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespaces can be made here (root, or sysctl kernel.unprivileged_userns_clone, is needed)")
    with tempfile.TemporaryDirectory(prefix="rocemu-interop-") as scratch:
        environment = dict(os.environ, XDG_RUNTIME_DIR=f"{scratch}/run", TMPDIR=f"{scratch}/run")
        os.mkdir(f"{scratch}/run", 0o700)
        if options.user:  # who cannot read a cache of root's
            os.chmod(scratch, 0o755)
            os.chown(f"{scratch}/run", 65534, 65534)
            folder = shutil.copytree(folder, f"{scratch}/image")
            environment["HOME"] = "/nonexistent"
        words = [word for word in sys.argv[1:] if word != "--user"]
        command = [*setpriv, "--", *unshare, os.path.abspath(__file__), "--image", str(folder), *words]
        return subprocess.run(command, env=environment, check=False).returncode


# ---- inside ----

def make_link(mtu):
    for words in (["link", "set", "lo", "up"], ["tuntap", "add", "dev", TAP, "mode", "tap"],
                  ["link", "set", TAP, "mtu", str(mtu), "up"], ["address", "add", f"{HOST[4]}/24", "dev", TAP],
                  ["address", "add", f"{HOST[6]}/64", "dev", TAP, "nodad"]):
        subprocess.run(["ip", *words], check=True)


class Difference(Exception):
    """What is not as it must be."""


class Lab:
    """Both sides, with one NIC."""

    def __init__(self, rxe, rocemu, options):
        self.rxe, self.rocemu, self.options = rxe, rocemu, options
        self.mtu = None
        self.gids = {}

    def side(self, name):
        return self.rxe if name == "rxe" else self.rocemu

    def use_mtu(self, mtu):
        if self.mtu == mtu:
            return
        self.rxe.set_mtu(mtu)
        self.rocemu.set_mtu(mtu)
        self.mtu = mtu
        # A small MTU took the IPv6 addresses of neither; the GIDs may have other indices all the same.
        self.gids = {(side.name, ip): self.wait_for_gid(side, ip) for side in (self.rxe, self.rocemu) for ip in (4, 6)}

    def wait_for_gid(self, side, ip):
        deadline = time.monotonic() + 20
        while True:
            index = gid_index(side.devinfo(), side.addresses[ip])
            if index is not None:
                return index
            if time.monotonic() > deadline:
                raise GuestFailed(f"{side.name} has no GID for {side.addresses[ip]}:\n{side.devinfo()}")
            time.sleep(0.2)

    def command(self, row, text, side, server):
        return text.format(device=side.device, gid=self.gids[side.name, row.ip], own=side.addresses[row.ip],
                           peer=server.addresses[row.ip], host=server.addresses[4])

    def pair(self, row, server_name):
        """Runs a row once. Raises Difference, with what both ends printed."""
        server_side, client_side = self.side(server_name), self.side(OTHER[server_name])
        server = server_side.start(self.command(row, row.server, server_side, server_side))
        client = None
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not server_side.ready(row):
                if server.code() is not None or time.monotonic() > deadline:
                    raise Difference("the server did not become ready")
                time.sleep(0.05)
            client = client_side.start(self.command(row, row.client, client_side, server_side))
            code = client.wait(row.seconds)
            if code != 0:
                raise Difference("the client did not end" if code is None else f"the client ended with {code}")
            if not row.stays and (code := server.wait(15)) != 0:
                raise Difference("the server did not end" if code is None else f"the server ended with {code}")
            for end in (server, client):
                if wrong := re.search(r"invalid data|mismatch|[Cc]ompletion with error|verify error", end.output()):
                    raise Difference(f"printed '{wrong[0]}'")
        except Difference as why:
            for end in (server, client):
                if end is not None:
                    end.stop()
            raise Difference("\n".join([str(why)] + [f"---- {end.command} (exit code {end.code()})\n{end.output()}"
                                                     for end in (server, client) if end])) from why
        finally:
            for end in (server, client):
                if end is not None:
                    end.stop()

    def scenario(self, name, requester_name, responder_name):
        """What the two ends of a scenario saw: two lines."""
        requester_side, responder_side = self.side(requester_name), self.side(responder_name)
        words = "{program} {name} {device} {gid} {port}"

        def start(side, *host):
            program = self.options.scenario if side is self.rocemu else "interop_scenario"
            return side.start(" ".join([words.format(program=program, name=name, device=side.device,
                                                     gid=self.gids[side.name, 4], port=SCENARIO_PORT), *host]))

        ends = [start(responder_side)]
        try:
            ends.append(start(requester_side, responder_side.addresses[4]))
            for end in ends:
                if end.wait(SCENARIO_SECONDS) != 0:
                    raise Difference("\n".join(f"{each.command} (exit code {each.code()}): {each.output()}"
                                               for each in ends))
            # Of the async events, which stand behind it, rxe sends none when a request may not access memory.
            return [end.output().splitlines()[0] for end in ends]
        finally:
            for end in ends:
                end.stop()


def grown(before, after, names):
    """A counter that is not there is an error: it could not be held against anything."""
    return {name: after[name] - before[name] for name in names if after[name] != before[name]}


class Report:
    def __init__(self, verbose):
        self.verbose = verbose
        self.lines = []
        self.failed = 0

    def add(self, port, title, direction, result, remark, seconds):
        self.lines.append((port, title, direction, result, remark))
        self.failed += result == "FAIL"
        print(f"{result} {port} {title}, {direction}{': ' if remark else ''}{remark} ({seconds:.1f} s)", flush=True)

    def table(self):
        rows = {}
        for port, title, direction, result, remark in self.lines:
            rows.setdefault((port, title), []).append((direction, result, remark))
        yield "| port | program | seen |"
        yield "|---|---|---|"
        for (port, title), results in rows.items():
            seen = "; ".join(f"{direction}: {result}{f' ({remark})' if remark and result == 'ok' else ''}"
                             for direction, result, remark in results)
            if all(result == "ok" and not remark for _, result, remark in results):
                seen = "ok"
            yield f"| {port} | {title} | {seen} |"


def counted(lab, work, may_lose):
    """Does `work` between two looks at the counters. A remark on what was sent twice."""
    before = lab.rxe.counters(), lab.rocemu.counters()
    work()
    after = lab.rxe.counters(), lab.rocemu.counters()

    def seen(rxe_names, rocemu_names):
        found = {f"rxe {name}": value for name, value in grown(before[0], after[0], rxe_names).items()}
        found.update({f"rocemu {name}": value for name, value in grown(before[1], after[1], rocemu_names).items()})
        return found

    wrong = seen(RXE_NEVER, ROCEMU_NEVER)
    lost = seen(RXE_LOST, ROCEMU_LOST)
    if not may_lose:
        wrong.update(lost)
    if wrong:
        raise Difference(f"counted {wrong}: {lab.rxe.complaints()}")
    again = {**lost, **seen(RXE_AGAIN, ROCEMU_AGAIN)}
    if not again:
        return ""
    return ("lost and sent again: " if may_lose else "late: ") + ", ".join(f"{name} {n}" for name, n in again.items())


def attempt_pair(lab, row, server):
    """Programs whose ACK timeout is 67 ms give up when the emulated machine stands still for half a second: such a row
    is run once more, and says so. So is one whose client came too early."""
    remarks = []
    while True:
        try:
            remark = counted(lab, lambda: lab.pair(row, server), row.loss)
            return "; ".join([*dict.fromkeys(remarks), *([remark] if remark else [])])
        except Difference as why:
            causes = {**AGAIN, **(AGAIN_WITH_LOSS if row.loss else {})}
            remark, most = next((again for pattern, again in causes.items() if re.search(pattern, str(why))), ("", 0))
            if remarks.count(remark) >= most:
                raise
            remarks.append(remark)


def run_pairs(lab, kind, options, report):
    chosen = [row for row in ROWS if re.search(options.only, row.title()) and (row.short or not options.short)]
    for mtu in (LARGE_MTU, SMALL_MTU):
        for row in chosen:
            if row.mtu != mtu or (kind == "udp" and not row.udp) or (kind == "vlan" and not row.vlan()):
                continue
            lab.use_mtu(mtu)
            if kind != "vlan":
                lab.rocemu.set_loss(LOSS if row.loss else "none")
            for server in ("rxe", "rocemu"):
                started = time.monotonic()
                try:
                    remark = attempt_pair(lab, row, server)
                    result = "ok"
                except (Difference, GuestFailed, OSError) as why:
                    result, remark = "FAIL", str(why)
                report.add(kind, row.title(), f"server {server}", result, remark, time.monotonic() - started)
    if kind != "vlan":
        lab.rocemu.set_loss("none")


def run_scenarios(lab, kind, options, report, expected):
    names = subprocess.run([options.scenario, "--list"], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        title = f"scenario {name}"
        if not re.search(options.only, title) or (options.short and name not in SHORT_SCENARIOS):
            continue
        lab.use_mtu(LARGE_MTU)
        for requester in ("rocemu", "rxe"):
            started = time.monotonic()
            try:
                if name not in expected:
                    expected[name] = lab.scenario(name, "rxe", "rxe")
                seen = []
                counted(lab, lambda n=name, r=requester: seen.extend(lab.scenario(n, r, OTHER[r])), True)
                if seen != DIFFERENT.get((name, OTHER[requester]), expected[name]):
                    raise Difference("\n".join(["", *(f"  two rxe: {line}" for line in expected[name]),
                                                *(f"  here:    {line}" for line in seen)]))
                result, remark = "ok", " | ".join(seen) if options.verbose else ""
            except (Difference, GuestFailed, OSError) as why:
                result, remark = "FAIL", str(why)
            report.add(kind, title, f"requester {requester}", result, remark, time.monotonic() - started)


def inside(options):
    options.rocemu = os.environ.get("ROCEMU", "rocemu")
    options.scenario = os.environ.get("SCENARIO", "interop_scenario")
    make_link(LARGE_MTU)
    report = Report(options.verbose)
    expected = {}
    folder = Path(options.image)
    with Guest(folder, TAP, LARGE_MTU, f"{GUEST[4]}/24", f"{GUEST[6]}/64") as guest:
        version = (folder / "version").read_text(encoding="ascii").strip()
        print(f"Linux {version} is up after {guest.boot_seconds:.1f} s", flush=True)
        if options.scripts:
            return script_table.play(guest, options.rocemu, GUEST[4], options.scripts, options.table, version)
        guest.push(options.scenario)
        for kind in options.port or ["interface", "udp", "vlan"]:
            if kind == "vlan":
                with VlanRocemu(guest, options.rocemu, LARGE_MTU) as rocemu:
                    run_pairs(Lab(VlanRxe(guest), rocemu, options), kind, options, report)
                continue
            with Rocemu(options.rocemu, kind, TAP, HOST) as rocemu:
                lab = Lab(Rxe(guest, GUEST), rocemu, options)
                run_scenarios(lab, kind, options, report, expected)
                run_pairs(lab, kind, options, report)
                print(f"rxe counts: {lab.rxe.counters()}")
    if options.table:
        Path(options.table).write_text("\n".join(report.table()) + "\n", encoding="utf-8")
    print(f"{len(report.lines) - report.failed} of {len(report.lines)} as they must be")
    return 1 if report.failed or not report.lines else 0


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = parse()
    if options.list:
        print("\n".join(row.title() for row in ROWS))
        return 0
    return inside(options) if options.image else outside(options)


if __name__ == "__main__":
    sys.exit(main())
