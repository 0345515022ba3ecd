#!/usr/bin/python3 -B
"""Counters, as those who look at a NIC from outside read them, after programs have made them move.

    counters.py CASE...      counters.py --list

ROCEMU names the rocemu command to use, BAD_INPUT and VERBS the programs of tests/e2e/bad_input and tests/e2e/verbs. Each
case gets its own NIC with two devices. Exit code 77: a program is missing.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
from pairs import Pair  # noqa: E402
from program_cases import ROCEMU, fail, main, skip  # noqa: E402

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


def need(program, package):
    if shutil.which(program) is None:
        skip(f"{program} is missing (Debian package {package})")


def parse(text):
    """{metric: {labels: value}} of Prometheus' text format; each line is a comment or a sample of it."""
    metrics = {}
    for line in text.splitlines():
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            continue
        sample = re.fullmatch(r'([a-zA-Z_]\w*)(?:\{(.*)\})? ([-+.e\d]+|NaN)', line)
        if sample is None:
            fail(f"this is no sample: {line!r}")
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or "")
        metrics.setdefault(sample[1], {})[tuple(labels)] = float(sample[3])
    return metrics


def of_port(metrics, name):
    """{device: value}"""
    return {dict(labels)["device"]: value for labels, value in metrics[name].items()}


def metrics_text():
    return subprocess.check_output([ROCEMU, "metrics"], text=True)


def metrics():
    """`rocemu metrics` has what the files have, and each QP with its program and its peer while it is there."""
    make_traffic()
    shown_are_counted()
    shown = parse(metrics_text())
    for folder in ("counters", "hw_counters"):
        for name in read(DEVICES[0], folder):
            if name == "lifespan":
                continue
            words = name in ("port_rcv_data", "port_xmit_data")
            values = of_port(shown, f"rocemu_{name}{'_bytes' if words else ''}_total")
            for device in DEVICES:
                if values[device] != read(device, folder)[name] * (4 if words else 1):
                    fail(f"{name} of {device}: {values[device]}, and not {read(device, folder)[name]}")
    need("ib_write_bw", "perftest")
    with Pair("ib_write_bw", ["-F", "-D", "3"], *DEVICES) as pair:
        pair.start_server()
        pair.start_client()

        def sends():
            sent = parse(metrics_text()).get("rocemu_qp_sent_bytes_total", {})
            return any(value > 0 and dict(labels)["program"] == "ib_write_bw" and "/" in dict(labels)["peer"]
                       for labels, value in sent.items())
        wait_until("a QP of ib_write_bw sends", sends)
        pair.client.wait(60)


def curl(*arguments):
    return subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def http():
    """Served at a port of loopback that the kernel has chosen; nobody else is asked, and nothing can be changed."""
    need("curl", "curl")
    address = status()["metrics"]
    if not address.startswith("127.0.0.1:"):
        fail(f"served at {address}")
    names = parse(curl(f"http://{address}/metrics")).keys()
    if names != parse(metrics_text()).keys() or "rocemu_port_up" not in names:
        fail(f"served are {names}")
    codes = [curl("-o", "/dev/null", "-w", "%{http_code} %{content_type}", *arguments) for arguments in
             ((f"http://{address}/metrics",), (f"http://{address}/other",), ("-X", "DELETE", f"http://{address}/metrics"))]
    if codes != ["200 text/plain; version=0.0.4; charset=utf-8", "404 text/plain", "405 text/plain"]:
        fail(f"the answers are {codes}")
    # One connection for several requests, as Prometheus does it.
    twice = curl("-w", "%{num_connects} ", "-o", "/dev/null", f"http://{address}/metrics", "-o", "/dev/null",
                 f"http://{address}/metrics")
    if twice.split() != ["1", "0"]:
        fail(f"connections for two requests: {twice}")


def unix_socket():
    need("curl", "curl")
    path = status()["metrics"]
    if path != os.environ["METRICS_SOCKET"] or os.stat(path).st_mode & 0o777 != 0o600:
        fail(f"served at {path}")
    if "rocemu_port_up" not in parse(curl("--unix-socket", path, "http://nic/metrics")):
        fail("the socket serves something else")


def dashboard():
    """Grafana's dashboard asks for metrics that there are."""
    file = HERE.parents[2] / "packaging/grafana/rocemu.json"
    panels = json.loads(file.read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in re.findall(r"rocemu_\w+", target["expr"])}
    begun = set(re.findall(r"^# TYPE (\w+)", metrics_text(), re.M))
    if not asked or not asked <= begun:
        fail(f"there are none of these: {asked - begun}")


# The exporter's names of what it reads in counters/.
EXPORTED = {"port_data_received_bytes": "port_rcv_data", "port_data_transmitted_bytes": "port_xmit_data",
            "port_packets_received": "port_rcv_packets", "port_packets_transmitted": "port_xmit_packets",
            "unicast_packets_received": "unicast_rcv_packets", "multicast_packets_received": "multicast_rcv_packets",
            "multicast_packets_transmitted": "multicast_xmit_packets", "link_downed": "link_downed",
            "port_errors_received": "port_rcv_errors", "port_discards_received": "port_rcv_discards",
            "port_discards_transmitted": "port_xmit_discards", "symbol_error": "symbol_error",
            "port_constraint_errors_received": "port_rcv_constraint_errors",
            "port_constraint_errors_transmitted": "port_xmit_constraint_errors",
            "port_receive_remote_physical_errors": "port_rcv_remote_physical_errors",
            "port_receive_switch_relay_errors": "port_rcv_switch_relay_errors", "vl15_dropped": "VL15_dropped"}


def node_exporter():
    """Debian's exporter, a static program, reads the tree of files and exports what is in it."""
    program = "prometheus-node-exporter"
    need(program, program)
    need("curl", "curl")
    make_traffic()
    shown_are_counted()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    exporter = subprocess.Popen([program, f"--path.sysfs={tree()}", "--collector.disable-defaults",
                                 "--collector.infiniband", f"--web.listen-address={address}"], stderr=subprocess.DEVNULL)
    try:
        wait_until("the exporter answers", lambda: exporter.poll() is None and subprocess.run(
            ["curl", "-sf", "-o", "/dev/null", f"http://{address}/metrics"], check=False).returncode == 0)
        shown = parse(curl(f"http://{address}/metrics"))
    finally:
        exporter.terminate()
        exporter.wait()
    for name, file in EXPORTED.items():
        values = of_port(shown, f"node_infiniband_{name}_total")
        for device in DEVICES:
            wanted = read(device, "counters")[file] * (4 if name.endswith("_bytes") else 1)
            if values[device] != wanted:
                fail(f"node_infiniband_{name}_total of {device} is {values[device]}, and not {wanted}")
    if of_port(shown, "node_infiniband_state_id") != dict.fromkeys(DEVICES, 4) or \
            of_port(shown, "node_infiniband_physical_state_id") != dict.fromkeys(DEVICES, 5) or \
            of_port(shown, "node_infiniband_rate_bytes_per_second") != dict.fromkeys(DEVICES, 12.5e9):
        fail("the exporter takes the ports' states or rates for something else")


CASES = {"files": (files, ()), "link_downed": (link_downed, ()), "changed_status": (changed_status, ()),
         "metrics": (metrics, ()), "http": (http, ("--metrics", "0")), "unix_socket": (unix_socket, ("--metrics", "SOCKET")),
         "dashboard": (dashboard, ()), "node_exporter": (node_exporter, ())}


def start(name):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["METRICS_SOCKET"] = f"{folder}/metrics.sock"
        options = [os.environ["METRICS_SOCKET"] if option == "SOCKET" else option for option in CASES[name][1]]
        return subprocess.run([ROCEMU, "run", *options, "--", SELF, "--inside", name], check=False).returncode


def inside(name):
    CASES[name][0]()
    return 0


sys.exit(main(SELF, sys.argv[1:], CASES, start, inside))
