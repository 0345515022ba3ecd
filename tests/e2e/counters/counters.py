#!/usr/bin/python3 -B
"""Counters, as those who look at a NIC from outside read them, after programs have made them move.

    counters.py CASE...      counters.py --list

ROCEMU names the rocemu command to use, BAD_INPUT and VERBS the programs of tests/e2e/bad_input and tests/e2e/verbs. Each
case gets its own NIC with two devices. Exit code 77: a program is missing.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from program_cases import ROCEMU, fail, main  # noqa: E402

SELF = os.path.realpath(__file__)
SECONDS = 30
DEVICES = ("rocemu0", "rocemu1")


def status():
    return json.loads(subprocess.check_output([ROCEMU, "status", "--json"]))


def tree():
    """The device tree, as programs find it that are not shown the NIC."""
    return pathlib.Path(status()["state_dir"]) / "sys"


def read(device, folder):
    """All counters of a folder; each is a file of the kernel's form."""
    values = {}
    for file in (tree() / "class/infiniband" / device / "ports/1" / folder).iterdir():
        if file.is_symlink() or not file.is_file():
            fail(f"{file} is no regular file")
        text = file.read_text()
        if not text.endswith("\n") or not text[:-1].isdecimal():
            fail(f"{file} holds {text!r}")
        values[file.name] = int(text)
    return values


def read_all(folder):
    """The sums over all devices."""
    sums = {}
    for device in DEVICES:
        for name, value in read(device, folder).items():
            sums[name] = sums.get(name, 0) + value
    return sums


def wait_until(what, condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            fail(f"{what}: not within {SECONDS} s")
        time.sleep(0.02)


def run(program, *rows):
    for row in rows:
        arguments = [os.environ[program], "-d", DEVICES[0], "-D", DEVICES[1], "--only", row]
        output = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
        if output.returncode != 0 or "PASS" not in output.stdout:
            fail(f"{' '.join(arguments)} ended with {output.returncode} and said:\n{output.stdout}")


def make_traffic():
    """Requests of all kinds, and mistakes of which the counters tell."""
    run("VERBS", "atomic", "multicast", "RNR")
    run("BAD_INPUT", "rkey", "receive", "retries run out")


# The names of rocemu status and those of sysfs, of what the NIC counts in one place for both.
SAME = {"req_cqe_error": "req_cqe_error", "req_cqe_flush_error": "req_cqe_flush_error",
        "resp_cqe_error": "resp_cqe_error", "rx_write_requests": "rx_write_requests", "tx_frames": "sent_pkts",
        "duplicate_requests": "duplicate_request", "rnr_naks_sent": "send_rnr_err"}


def shown_are_counted():
    """The files say what the NIC says."""
    def same():
        return all(device["counters"][name] == read(device["name"], "hw_counters")[file]
                   for device in status()["devices"] for name, file in SAME.items())
    wait_until("sysfs tells of all that was counted", same)


def files():
    make_traffic()
    shown_are_counted()
    hw_counters, counters = read_all("hw_counters"), read_all("counters")
    moved = ("rx_write_requests", "rx_read_requests", "rx_atomic_requests", "out_of_buffer", "req_cqe_error",
             "req_cqe_flush_error", "req_remote_access_errors", "req_remote_invalid_request", "resp_cqe_error",
             "resp_cqe_flush_error", "resp_local_length_error", "resp_remote_access_errors",
             "req_transport_retries_exceeded", "req_rnr_retries_exceeded", "local_ack_timeout_err")
    still = [name for name in moved if hw_counters[name] == 0]
    still += [name for name in ("multicast_rcv_packets", "multicast_xmit_packets", "unicast_rcv_packets")
              if counters[name] == 0]
    if still:
        fail(f"these did not move: {still}\n{hw_counters}\n{counters}")
    if hw_counters["req_remote_access_errors"] != hw_counters["resp_remote_access_errors"]:
        fail("both ends count a refused key, one to one")


def link_downed():
    """A port that goes down is counted, without a frame."""
    for times in (1, 2):
        subprocess.run([ROCEMU, "fault", "rocemu1", "port-down"], stdout=subprocess.DEVNULL, check=True)
        wait_until("link_downed counts", lambda: read("rocemu1", "counters")["link_downed"] == times)
        subprocess.run([ROCEMU, "fault", "clear", "all"], stdout=subprocess.DEVNULL, check=True)
        state = tree() / "class/infiniband/rocemu1/ports/1/state"
        wait_until("the port is up", lambda: state.read_text() == "4: ACTIVE\n")
    if read("rocemu0", "counters")["link_downed"] != 0:
        fail("the other port was down, too")


def changed_status():
    """A completion that a fault makes an error is counted as one."""
    subprocess.run([ROCEMU, "fault", "all", "completion-status", "status=rem-access-err", "nth=1"],
                   stdout=subprocess.DEVNULL, check=True)
    subprocess.run([os.environ["VERBS"], "-d", DEVICES[0], "-D", DEVICES[1], "--only", "atomic"],
                   stdout=subprocess.DEVNULL, check=False)  # it fails, for it sees the error
    def counted():
        hw_counters = read_all("hw_counters")
        errors = hw_counters["req_cqe_error"] + hw_counters["resp_cqe_error"]
        return errors == sum(device["counters"]["completions_with_error"] for device in status()["devices"]) > 0
    wait_until("the error is counted", counted)


CASES = {"files": (files, ()), "link_downed": (link_downed, ()), "changed_status": (changed_status, ())}


def start(name):
    return subprocess.run([ROCEMU, "run", *CASES[name][1], "--", SELF, "--inside", name], check=False).returncode


def inside(name):
    CASES[name][0]()
    return 0


sys.exit(main(SELF, sys.argv[1:], CASES, start, inside))
