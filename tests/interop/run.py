#!/usr/bin/python3 -B
"""The NIC against Linux's Soft RoCE (rdma_rxe) in a virtual machine: unmodified programs, each side as server and as
client, and what both ends see of errors, compared with what two rxe see.

    run.py [--user] [--short] [--only REGEX] [--port interface|udp|vlan] [--list] [--verbose] [--table FILE]
    run.py [--user] --scripts FOLDER [--table FILE | --port ...]

--user   as an ordinary user without any capability, in a user namespace (started by root)
--short  a few rows (a minute or two for each port); otherwise all of them (some 20 minutes)
--table  writes a table in Markdown
--scripts  plays the scripts of a folder (docs/scripts.md) against rxe: instead of all this, or before the ports that are
         named; AGENT names rocemu-script-agent

ROCEMU and SCENARIO name the rocemu command and the program interop_scenario. Everything happens in a network
namespace made for it, on a tap between the NIC and qemu; root is not needed where users may make namespaces.
Exit code 77: it could not be run here; the last line says why."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import image
import script_table
from guest import Guest, tap_link
from guest_nic import VlanRocemu, VlanRxe
from lab import Lab, Report, run_pairs, run_scenarios
from machine_kind import AMD64
from rows import LARGE_MTU, ROWS
from sides import Rocemu, Rxe

SKIPPED = 77
KINDS = ["interface", "udp", "vlan"]
TAP = "wire0"
HOST = {4: "192.168.77.1", 6: "fd77::1"}
GUEST = {4: "192.168.77.2", 6: "fd77::2"}


def skip(why):
    print(f"SKIP: nothing was run against Linux rxe: {why}", flush=True)
    sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--port", choices=KINDS, action="append")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("--scripts", metavar="FOLDER")
    parser.add_argument("--image", help=argparse.SUPPRESS)  # set inside: the work in the namespaces
    options = parser.parse_args()
    if options.scripts and options.port and options.table:
        parser.error("--table is of the ports or of the scripts: leave one of them out")
    return options


# ---- outside: image and namespaces ----

def outside(options):
    for program, package in ((AMD64.qemu, AMD64.qemu_package), ("ip", "iproute2"), ("unshare", "util-linux"),
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


def run_port(guest, kind, options, report, expected):
    if kind == "vlan":
        with VlanRocemu(guest, options.rocemu, LARGE_MTU) as rocemu:
            run_pairs(Lab(VlanRxe(guest), rocemu, options), kind, options, report)
        return
    with Rocemu(options.rocemu, kind, TAP, HOST) as rocemu:
        lab = Lab(Rxe(guest, GUEST), rocemu, options)
        run_scenarios(lab, kind, options, report, expected)
        run_pairs(lab, kind, options, report)
        print(f"rxe counts: {lab.first.counters()}")


def inside(options):
    options.rocemu = os.environ.get("ROCEMU", "rocemu")
    options.scenario = os.environ.get("SCENARIO", "interop_scenario")
    make_link(LARGE_MTU)
    report = Report(options.verbose)
    expected = {}
    folder = Path(options.image)
    settings = {"name": "rxe", "mtu": LARGE_MTU, "ipv4": f"{GUEST[4]}/24", "ipv6": f"{GUEST[6]}/64"}
    with Guest(folder, tap_link(TAP), settings) as guest:
        version = (folder / "version").read_text(encoding="ascii").strip()
        print(f"Linux {version} is up after {guest.boot_seconds:.1f} s", flush=True)
        # Before the ports, whose rows leave a link of small frames behind.
        scripts_failed = options.scripts and script_table.play(guest, options.rocemu, GUEST[4], options.scripts,
                                                               options.table, version)
        kinds = options.port or ([] if options.scripts else KINDS)
        if kinds:
            guest.push(options.scenario)
        for kind in kinds:
            run_port(guest, kind, options, report, expected)
    if not kinds:
        return scripts_failed
    if options.table:
        Path(options.table).write_text("\n".join(report.table()) + "\n", encoding="utf-8")
    print(f"{len(report.lines) - report.failed} of {len(report.lines)} as they must be")
    return 1 if report.failed or not report.lines or scripts_failed else 0


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = parse()
    if options.list:
        print("\n".join(row.title() for row in ROWS))
        return 0
    return inside(options) if options.image else outside(options)


if __name__ == "__main__":
    sys.exit(main())
