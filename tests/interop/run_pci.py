#!/usr/bin/python3 -B
"""The NIC on network cards that DPDK takes from the kernel (pci: ports): qemu's, since the machine that tests run on
has none to give away.

    run_pci.py --pci CARD... [--short] [--driver vfio-pci|uio_pci_generic] [--only REGEX] [--list] [--table FILE]

Two virtual machines joined by a socket: one with the card and rocemu on it; the other with Linux's Soft RoCE, and then
with rocemu on its kernel's interface. Unmodified programs, each side as server and as client; frames that are longer
than the card's MTU, a link that goes down, and a card that is taken away.

--pci     e1000e, igb (of qemu 8 on), virtio-net-pci, vmxnet3
--short   a few rows (a minute for each card)
--driver  vfio-pci (behind an emulated IOMMU) if not given, or uio_pci_generic, without an IOMMU and with hugepages
--only    rows whose title matches
--table   writes a table in Markdown

ROCEMU and SCENARIO name the rocemu command and the program interop_scenario. Needs no root, no tap and no namespace.
Exit code 77: it could not be run here; the last line says why."""
import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import image
from guest import VIRTIO, Guest
from lab import Lab, Report, run_pairs, run_scenarios
from machine_kind import AMD64
from pci_nic import CARDS, PEER_MAC, PciRocemu, PeerRocemu, card_words, machine_words
from pci_rows import ROWS, run_changes
from rows import LARGE_MTU
from sides import Rxe

SKIPPED = 77
NIC = {4: "192.168.77.1", 6: "fd77::1"}
PEER = {4: "192.168.77.2", 6: "fd77::2"}
# Programs meet there by TCP, since the card is not the kernel's.
NIC_TCP, PEER_TCP = "192.168.79.1", "192.168.79.2"
SOCKET_SECONDS = 20
# Of the short rows, by title: those against rxe, and those against rocemu.
SHORT_ROWS = "ibv_rc_pingpong.*IPv4|ib_write_bw|rping -C 10|scenario cas|scenario send-too-long"
SHORT_PEER_ROWS = "ib_write_bw -s 65536 -n 100|rping -C 10"


def skip(why):
    print(f"SKIP: nothing was run on a network card: {why}", flush=True)
    sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pci", nargs="+", action="extend", choices=list(CARDS), required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--driver", choices=["vfio-pci", "uio_pci_generic"], default="vfio-pci")
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", metavar="FILE")
    return parser.parse_args()


def qemu_has(model):
    """Of a model that it does not have it has no properties to list; its exit code is 0 all the same."""
    asked = subprocess.run([AMD64.qemu, "-device", f"{model},help"], capture_output=True, text=True, check=False)
    return "options:" in asked.stdout


def netdev(name, path, server):
    return ["-netdev", f"stream,id={name},server={'on' if server else 'off'},addr.type=unix,addr.path={path}"]


def tcp_link(path, server, number):
    return [*netdev("tcp", path, server), "-device", f"{VIRTIO},netdev=tcp,mac=52:54:00:aa:00:0{number}"]


def wait_for_sockets(*paths):
    deadline = time.monotonic() + SOCKET_SECONDS
    while not all(map(os.path.exists, paths)) and time.monotonic() < deadline:
        time.sleep(0.05)


@contextlib.contextmanager
def machines(folder, card, with_iommu):
    """The one with the card and the peer, up."""
    with tempfile.TemporaryDirectory(prefix="rocemu-wires-") as wires, contextlib.ExitStack() as both:
        wire, tcp = f"{wires}/link", f"{wires}/tcp"
        words, kernel_words = machine_words(with_iommu)
        nic = Guest(folder, [*netdev("link", wire, True), *card_words(card, "link"), *tcp_link(tcp, True, 1)],
                    {"name": "nic", "tcp": f"{NIC_TCP}/24"}, words, kernel_words=kernel_words)
        peer = Guest(folder, [*netdev("link", wire, False), "-device", f"{VIRTIO},netdev=link,mac={PEER_MAC}",
                              *tcp_link(tcp, False, 2)],
                     {"name": "peer", "tcp": f"{PEER_TCP}/24", "mtu": LARGE_MTU, "ipv4": f"{PEER[4]}/24",
                      "ipv6": f"{PEER[6]}/64"})
        for guest in (nic, peer):
            both.callback(guest.__exit__)
            guest.boot()
            wait_for_sockets(wire, tcp)
        for guest in (nic, peer):
            guest.wait_for_boot()
        yield nic, peer


def shortened(options, titles):
    """The options, with these rows alone in the short form."""
    only = titles if options.short and not options.only else options.only
    return argparse.Namespace(**{**vars(options), "only": only})


def run_card(card, folder, options, report):
    expected = {}
    with machines(folder, card, options.driver == "vfio-pci") as (nic, peer):
        print(f"{card.model}: both machines are up after {max(nic.boot_seconds, peer.boot_seconds):.1f} s", flush=True)
        for guest in (nic, peer):
            guest.push(options.scenario)
        with PciRocemu(nic, options.rocemu, NIC, NIC_TCP, options.driver) as rocemu:
            may_lose = card.loses_frames and options.driver == "vfio-pci"
            lab = Lab(Rxe(peer, PEER, PEER_TCP), rocemu, options, may_lose)
            rows = shortened(options, SHORT_ROWS)
            run_scenarios(lab, card.model, rows, report, expected)
            run_pairs(lab, card.model, rows, report)
            run_changes(lab, card, options, report)
            with PeerRocemu(peer, options.rocemu, PEER, PEER_TCP) as other:
                run_pairs(Lab(other, rocemu, options, may_lose), f"{card.model} to rocemu",
                          shortened(options, SHORT_PEER_ROWS), report)


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = parse()
    if options.list:
        print("\n".join(row.title for row in ROWS))
        return 0
    options.rocemu = os.environ.get("ROCEMU", "rocemu")
    options.scenario = os.environ.get("SCENARIO", "interop_scenario")
    if shutil.which(AMD64.qemu) is None:
        skip(f"{AMD64.qemu} is missing (Debian package {AMD64.qemu_package})")
    try:
        folder = image.get()
    except image.ImageUnavailable as why:
        skip(f"no image of the virtual machine: {why}")
    report = Report(options.verbose)
    for model in options.pci:
        if qemu_has(model):
            run_card(CARDS[model], folder, options, report)
        else:
            print(f"SKIP: this qemu has no {model}", flush=True)
    if options.table:
        Path(options.table).write_text("\n".join(report.table()) + "\n", encoding="utf-8")
    if not report.lines:
        skip("this qemu has none of the cards" if not options.only else "no row is called that")
    print(f"{len(report.lines) - report.failed} of {len(report.lines)} as they must be")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
