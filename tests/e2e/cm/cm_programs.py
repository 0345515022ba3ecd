#!/usr/bin/python3
"""Unmodified librdmacm programs over a private NIC.

    cm_programs.py [--user] [--impair SPEC] CASE...
    cm_programs.py [--user] [--impair SPEC] --run COMMAND...
    cm_programs.py --list

--user    as an ordinary user without any capability (to be started by root)
--impair  a bad network, as in rocemu run --impair SPEC
--run     another program over a NIC of its own, of which nothing may be left either

ROCEMU names the rocemu command to use (default: the one in PATH), ECHO the program of echo.cc. Each
case gets its own NIC; its server is waited for until it listens (or has joined its group), and in the
end nothing may be left of either side: no id, channel, connection, QP. Exit code 77: a program is
missing.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../tools")
from program_cases import ROCEMU, as_ordinary_user, fail, need_ucx_over_verbs, run_cases, skip

SELF = os.path.realpath(__file__)
A, B, B6 = "10.77.0.1", "10.77.0.2", "fd52:4f43:4500::2"
GROUP = "239.1.2.3"
COPIED = "/bin/ls"
ECHO = os.environ.get("ECHO", "echo-over-sockets")  # tests/e2e/cm/echo.cc
RSOCKETS = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
FIO = "fio --name=job --ioengine=rdma --port=8888 --bs=65536 --size=32m --iodepth=8"


class Case:
    """server and client are command lines; `clients` of the latter run at once. A server that `stays`
    is ended by SIGTERM. With `host_addresses` the NIC's addresses are also the host's, in a network
    namespace of its own: for programs that talk over TCP as well, or look for interfaces; the
    clients come when one of their sockets listens, and otherwise when the NIC has a listener (or
    what `waits_for` says). With `rsockets` both are ordinary sockets programs."""

    def __init__(self, server, client, clients=1, stays=False, host_addresses=False, timeout=60,
                 client_code=0, says=None, one_by_one=False, may_say=None, attempts=1,
                 rsockets=False, waits_for="listeners", env=None):
        self.server, self.client, self.clients = server, client, clients
        self.stays, self.host_addresses, self.timeout = stays, host_addresses, timeout
        self.client_code, self.says, self.one_by_one = client_code, says, one_by_one
        self.may_say, self.attempts, self.rsockets = may_say, attempts, rsockets
        self.waits_for, self.env = waits_for, env or {}


# The main thread of this rping closes the event channel as soon as the last event is acknowledged, and its thread for
# events may not be back at it by then: it finds the descriptor closed, and ends the program with 255. Newer ones wait
# for that thread first.
CLOSED_TOO_SOON = {"may_say": "rdma_get_cm_event: Bad file descriptor", "attempts": 5}


def rping(address, *options):
    return Case(f"rping -s -a {address} " + " ".join(options),
                f"rping -c -a {address} " + " ".join(options), **CLOSED_TOO_SOON)


def perftest(program, *options):
    """The server listens once for an exchange of parameters and then anew for the queue pairs, and a client
    that is quicker than that is refused, and crashes."""
    words = " ".join([program, "-R", "-F", "-n", "200", *options])
    refused = "RDMA_CM_EVENT_UNREACHABLE; error: 1" if "UD" in options else "RDMA_CM_EVENT_REJECTED; error: 8"
    return Case(words, f"{words} {B}", may_say=refused, attempts=5)


def ucmatose(*options):
    words = " ".join(["ucmatose", *options])
    return Case(words, f"{words} -s {B}")


def persistent(address):
    """Fifty clients that come one after the other and then ping at once. rping's server keeps one new
    connection in mind, and forgets it when another one comes before its main thread has run; kernels
    report both, too."""
    return Case(f"rping -s -P -a {address}", f"rping -c -a {address} -C 200 -V", clients=50, stays=True,
                one_by_one=True, **CLOSED_TOO_SOON)


def cmtime():
    """A server has to know how many connections there will be (rdma-core 56), and newer ones (65) have two equal sides
    that meet by TCP, of which one listens. The server of 56 crashes in its own list of work at 1,000 connections."""
    said = subprocess.run(["cmtime", "--help"], capture_output=True, text=True).stdout if shutil.which("cmtime") else ""
    if "-C controller" not in said:
        count = "-c 300" if "mimic_qp_delay" in said else "-c 1000"
        return Case(f"cmtime {count}", f"cmtime -s {B} {count}", stays=True)
    both = "-P 2 -C 127.0.0.1 -c 1000"
    return Case(f"cmtime {both} -L -b {A}", f"cmtime {both} -b {B}", waits_for="channels")


CASES = {
    "rping-ipv4": rping(B, "-C 100", "-V"),
    "rping-ipv6": rping(B6, "-C 100", "-V"),
    "rping-to-itself": rping(A, "-C 100", "-V"),
    "rping-sizes": rping(B, "-C 20", "-V", "-S 65535"),
    "rping-thousand": rping(B, "-C 1000", "-V"),
    "rping-persistent": persistent(B),
    "rping-persistent-ipv6": persistent(B6),
    "ucmatose": Case("ucmatose", f"ucmatose -s {B}"),
    "ucmatose-many": Case("ucmatose -c 100", f"ucmatose -s {B} -c 100"),
    "ucmatose-sizes": ucmatose("-c 5", "-C 20", "-S 65536"),
    "ucmatose-bytes": ucmatose("-c 5", "-C 20", "-S 1"),
    "udaddy": Case("udaddy", f"udaddy -s {B}"),
    "udaddy-many": Case("udaddy -c 20 -C 50 -S 1000", f"udaddy -s {B} -c 20 -C 50 -S 1000"),
    "mckey": Case(f"mckey -m {GROUP} -b {A}", f"mckey -m {GROUP} -b {B} -s", waits_for="groups"),
    "rdma_xclient:rc": Case("rdma_xserver -c r", f"rdma_xclient -s {B} -c r"),
    "rdma_xclient:xrc": Case("rdma_xserver -c x", f"rdma_xclient -s {B} -c x"),
    "ucmatose-migrate": Case("ucmatose -c 10 -m", f"ucmatose -s {B} -c 10 -m"),
    "rdma_client": Case("rdma_server", f"rdma_client -s {B}"),
    "cmtime": cmtime(),
    "rstream": Case("rstream -S 4096 -I 20", f"rstream -s {B} -S 4096 -I 20"),
    "riostream": Case("riostream -S 4096 -I 20", f"riostream -s {B} -S 4096 -I 20"),
    "rcopy": Case("rcopy", f"rcopy {COPIED} {B}:{{folder}}/copied", stays=True),
    # qperf's server tells its port before it listens there, so that its client may come too soon.
    "qperf": Case("qperf", f"qperf -cm1 -t 1 {A} rc_bw rc_lat", stays=True, host_addresses=True,
                  may_say="Event rejected", attempts=5),
    **{f"qperf:{name}": Case("qperf", f"qperf -cm1 -t 1 {A} {tests}", stays=True, host_addresses=True,
                             may_say="Event rejected", attempts=5)
       for name, tests in (("send", "rc_bi_bw"),
                           ("rdma", "rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat"),
                           ("poll", "rc_rdma_write_poll_lat"),
                           ("atomics", "rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add"))},
    "fi_pingpong:msg": Case("fi_pingpong -p verbs -e msg", f"fi_pingpong -p verbs -e msg {A}",
                            host_addresses=True),
    # When the other side is gone, rxm's own thread destroys the QP, although the completion of the last
    # SEND lies in the CQ, which the main thread has not polled yet on a loaded machine: it goes with the QP,
    # as with mlx5, and rxm reports it as flushed.
    "fi_pingpong:rxm": Case("fi_pingpong -p verbs;ofi_rxm -e rdm",
                            f"fi_pingpong -p verbs;ofi_rxm -e rdm {A}", host_addresses=True,
                            may_say="Work Request Flushed Error", attempts=5),
    "fio:write": Case(f"{FIO} --rw=read", f"{FIO} --hostname={B} --verb=write --rw=write"),
    "fio:read": Case(f"{FIO} --rw=read", f"{FIO} --hostname={B} --verb=read --rw=write"),
    "rsockets": Case(f"{ECHO} {A}", f"{ECHO} {A} client", rsockets=True),
    # UCX connects by socket addresses, which the transport rdmacm does by librdmacm; -q checks the data.
    "ucx-sockaddr": Case("io_demo -p 12345", f"io_demo -i 100 -q -p 12345 {A}", stays=True,
                         env={"UCX_TLS": "rc_verbs,self", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}),
    "no-listener": Case("rping -s -a " + B, f"rping -c -a {B} -p 9 -C 1", stays=True, client_code=None,
                        says="RDMA_CM_EVENT_REJECTED"),
    "nobody-there": Case("rping -s -a " + B, "rping -c -a 10.77.9.9 -C 1", stays=True, client_code=None,
                         says="RDMA_CM_EVENT_ADDR_ERROR"),
}
# It does neither XRC nor UC over librdmacm.
for name in ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"):
    CASES["perftest:" + name] = perftest(name, "-s", "4096")
for name in ("ib_atomic_bw", "ib_atomic_lat"):
    CASES["perftest:" + name] = perftest(name)
    CASES[f"perftest:{name}:swap"] = perftest(name, "-A", "CMP_AND_SWAP")
for name in ("ib_send_bw", "ib_send_lat"):
    CASES[f"perftest:{name}:ud"] = perftest(name, "-c", "UD", "-s", "4096")
CASES["perftest:qps"] = perftest("ib_send_bw", "-q", "4", "-s", "4096")


def status():
    text = subprocess.run([ROCEMU, "status", "--json"], check=True, capture_output=True).stdout
    return json.loads(text)


def wait_for(what, condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(f"{what}: {json.dumps(status()['connection_management'])}")
        time.sleep(0.01)


def kernel_listens():
    """Whether a TCP socket of this namespace listens."""
    for protocol in ("tcp", "tcp6"):
        with open("/proc/net/" + protocol) as table:
            if any(line.split()[3] == "0A" for line in table.readlines()[1:]):
                return True
    return False


def has_new_connection(seen):
    """Whether a client's connection is established that is not among those `seen`; now it is."""
    now = {connection["local_qpn"] for connection in status()["connection_management"]["connections"]
           if connection["active"] and connection["state"] == "established"}
    is_new = not now <= seen
    seen |= now
    return is_new


def left_over():
    """What the NIC still has of any program."""
    now = status()
    cm = now["connection_management"]
    left = {key: cm[key] for key in ("ids", "channels", "groups", "listeners", "connections", "events_lost") if cm[key]}
    for device in now["devices"]:
        left.update({f"{device['name']} {key}": n for key, n in device["objects"].items() if n})
    return left


class LostRace(Exception):
    """The programs lost a race between themselves, and said so."""


def run_inside(name):
    for attempts_left in reversed(range(CASES[name].attempts)):
        try:
            run_once(name, attempts_left > 0)
            break
        except LostRace:
            continue
    wait_for(f"{name}: something is left", lambda: not left_over(), 15)
    print(f"PASS {name}")


def run_once(name, may_be_retried):
    processes = []
    try:
        exchange(name, may_be_retried, processes)
    finally:  # what fails leaves no program behind, which would poll for ever
        for process in processes:
            process.kill()
            process.wait()


def exchange(name, may_be_retried, processes):
    """Starts server and clients, all of which are in `processes` then, and waits for their ends."""
    case = CASES[name]
    folder = os.environ["CM_PROGRAMS_FOLDER"]
    env = {**os.environ, **case.env}
    if case.rsockets:
        env["LD_PRELOAD"] += ":" + RSOCKETS
    with open(f"{folder}/server", "w+b") as server_log, open(f"{folder}/client", "w+b") as client_log:
        def show(why):
            for process in processes:
                process.kill()
                process.wait()
            said = {}
            for title, log in (("server", server_log), ("client", client_log)):
                log.seek(0)
                said[title] = log.read().decode(errors="replace")
            if may_be_retried and any(case.may_say in text for text in said.values()):
                raise LostRace
            for title, text in said.items():
                print(f"---- {title}\n{text[-3000:]}")
            fail(f"{name}: {why}")

        def start(command, log):
            processes.append(subprocess.Popen(command.format(folder=folder).split(), stdin=subprocess.DEVNULL,
                                              stdout=log, stderr=subprocess.STDOUT, env=env))
            return processes[-1]

        server = start(case.server, server_log)
        def listens():
            if server.poll() is not None:
                return True
            if case.host_addresses:
                return kernel_listens()
            return status()["connection_management"][case.waits_for]

        wait_for("the server does not listen", listens, 60)
        clients = []
        seen = set()
        for _ in range(case.clients):
            client = start(case.client, client_log)
            clients.append(client)
            if case.one_by_one:
                wait_for("a client is not connected",
                         lambda: client.poll() is not None or has_new_connection(seen), 60)
                client.send_signal(signal.SIGSTOP)
        for client in clients:
            client.send_signal(signal.SIGCONT)
        try:
            for client in clients:
                code = client.wait(case.timeout)
                if case.client_code is not None and code != case.client_code:
                    show(f"a client ended with {code}")
            if case.stays:
                server.send_signal(signal.SIGTERM)
                server.wait(10)
            elif server.wait(case.timeout) != 0:
                show(f"the server ended with {server.returncode}")
        except subprocess.TimeoutExpired:
            show("it takes too long")
        client_log.seek(0)
        text = client_log.read().decode(errors="replace")
        if case.says is not None and case.says not in text:
            show(f"the client does not say {case.says}")
        if name == "cmtime":
            print(text)
        if name == "rcopy" and open(f"{folder}/copied", "rb").read() != open(COPIED, "rb").read():
            fail("the copy differs")


def run_command(words):
    code = subprocess.run(words).returncode
    wait_for("something is left", lambda: not left_over(), 15)
    return code


def in_namespace(command):
    """`command` in a network namespace with interfaces that have the names and addresses of the devices."""
    script = ("ip link set lo up; for i in 0 1; do ip link add roce$i type dummy 2> /dev/null ||"
              " ip link add roce$i type veth peer name peer$i || exit 1; ip link set roce$i up &&"
              " ip addr add 10.77.0.$((i + 1))/16 dev roce$i || exit 1; done; exec \"$@\"")
    unshare = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    probe = subprocess.run([*unshare, "sh", "-c", script, "sh", "true"], capture_output=True)
    if probe.returncode != 0:
        skip("no network namespace to be had: " + probe.stderr.decode().strip())
    return [*unshare, "sh", "-c", script, "sh", *command]


def nic_of_its_own(impair):
    return [ROCEMU, "run", *(["--impair", impair] if impair else []), "--", SELF]


def run(name, impair):
    case = CASES[name]
    for program in (case.server.split()[0], case.client.split()[0]):
        if shutil.which(program) is None:
            skip(f"{program} is missing")
    if name == "ucx-sockaddr":
        need_ucx_over_verbs()
    if case.rsockets and not os.path.exists(RSOCKETS):
        skip(f"{RSOCKETS} is missing")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CM_PROGRAMS_FOLDER"] = folder
        command = nic_of_its_own(impair) + ["--inside", name]
        if case.host_addresses:
            command = in_namespace(command)
        return subprocess.run(command).returncode


def main(arguments):
    if arguments[:1] == ["--list"]:
        print("\n".join(CASES))
        return 0
    if arguments[:1] == ["--inside"]:
        return run_inside(arguments[1])
    if arguments[:1] == ["--run-inside"]:
        return run_command(arguments[1:])
    if arguments[:1] == ["--user"]:
        return as_ordinary_user(SELF, arguments[1:])
    impair = None
    if arguments[:1] == ["--impair"]:
        impair, arguments = arguments[1], arguments[2:]
    if arguments[:1] == ["--run"]:
        return subprocess.run(nic_of_its_own(impair) + ["--run-inside", *arguments[1:]]).returncode
    return run_cases(arguments, CASES, lambda name: run(name, impair))


sys.exit(main(sys.argv[1:]))
