#!/usr/bin/python3 -B
"""Unmodified programs on a NIC with which something goes wrong: how they end, or go on, and that nothing of them is left.

    fault_programs.py [--user] CASE...      fault_programs.py --list

--user    as an ordinary user without any capability (to be started by root)

ROCEMU names the rocemu command to use (default: the one in PATH), MPI_PROGRAMS the folder of ring (tests/e2e/mpi),
RECONNECT the program of reconnect.cc. Each case gets its own NIC, mostly with two devices. Exit code 77: a program is missing.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../tools")
from message_passing import mpirun, ucx_perftest
from pairs import End, Pair
from program_cases import ROCEMU, fail, main, need_ucx_over_verbs, skip

SELF = os.path.realpath(__file__)
A, B = "10.77.0.1", "10.77.0.2"
SECONDS = 60


def rocemu(*words):
    done = subprocess.run([ROCEMU, *words], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail(f"rocemu {' '.join(words)} ended with {done.returncode}")
    return done.stdout


def ask(*words):
    return json.loads(rocemu("fault", "--json", *words))["ids"]


def strikes():
    return sum(fault["strikes"] for fault in json.loads(rocemu("fault", "list", "--json")))


def status():
    return json.loads(rocemu("status", "--json"))


def wait_until(what, condition, report=lambda: ""):
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            fail(f"{what}: not within {SECONDS} s\n{report()}")
        time.sleep(0.02)


def frames_sent():
    return sum(device["counters"]["tx_frames"] for device in status()["devices"])


def wait_for_traffic(frames=2000):
    before = frames_sent()
    wait_until("traffic", lambda: frames_sent() > before + frames)


def nothing_left():
    def left():
        return [f"{device['name']} {kind}" for device in status()["devices"]
                for kind, count in device["objects"].items() if count]
    wait_until("the NIC is empty", lambda: not left(), lambda: str(left()))
    rocemu("fault", "clear", "all")


def ends_with(end, pattern, seconds=SECONDS):
    code = end.wait(seconds)
    if code in (None, 0) or not re.search(pattern, end.output()):
        fail(f"not the end that was due (/{pattern}/)\n{end.report()}")
    said = re.search(f".*(?:{pattern}).*", end.output()).group(0).strip()
    print(f"PASS {' '.join(end.command)}: {said}", flush=True)


def perftest(fault, pattern, program="ib_write_bw"):
    """The client's QP, or its device, has the fault in the middle of its traffic; then both run once more."""
    def run():
        with Pair(program, ["-F", "-D", "30", "-u", "8"], "rocemu1", "rocemu0") as pair:
            pair.start_server()
            pair.start_client()
            wait_for_traffic()
            ask(*fault)
            ends_with(pair.client, pattern)
        nothing_left()
        with Pair(program, ["-F", "-n", "200"], "rocemu1", "rocemu0") as pair:
            pair.run(SECONDS)
    return run


def rping():
    """The client ends with its message; the server, which stays, serves the next one."""
    server = End("server", ["rping", "-s", "-P", "-a", B])
    wait_until("the server listens", lambda: status()["connection_management"]["listeners"], server.report)
    client = End("client", ["rping", "-c", "-a", B, "-C", "1000000"])
    try:
        wait_for_traffic()
        ask("all", "qp-error", "status=rem-access-err", "request=100", f"pid={client.process.pid}")
        ends_with(client, "failed status|error")
        again = End("client", ["rping", "-c", "-a", B, "-C", "100", "-V"])
        if again.wait(SECONDS) is None or "ping data" in again.report():
            fail(again.report())
        if server.code() is not None:
            fail(server.report())
        print("PASS rping's server serves the next client", flush=True)
    finally:
        for end in (client, server):
            end.kill()
    nothing_left()


def device_removal():
    """The device is lost under a client, and under a server that listens at its address: librdmacm tells both. When it
    is back both start anew."""
    for lost, device in (("client", "rocemu0"), ("server", "rocemu1")):
        ends = [End("server", ["rping", "-s", "-P", "-a", B])]
        try:
            wait_until("the server listens", lambda: status()["connection_management"]["listeners"], ends[0].report)
            ends.append(End("client", ["rping", "-c", "-a", B, "-C", "1000000"]))
            wait_for_traffic()
            ask(device, "device-fatal")
            ends_with(next(end for end in ends if end.name == lost), "cma detected device removal")
        finally:
            for end in reversed(ends):
                end.kill()
        nothing_left()
        with_server = [End("server", ["rping", "-s", "-a", B, "-C", "10"])]
        try:
            wait_until("the server listens", lambda: status()["connection_management"]["listeners"], with_server[0].report)
            with_server.append(End("client", ["rping", "-c", "-a", B, "-C", "10", "-V"]))
            if with_server[1].wait(SECONDS) is None or "ping data" in with_server[1].report():
                fail(with_server[1].report())
        finally:
            for end in reversed(with_server):
                end.kill()
        nothing_left()


def reconnect():
    program = os.environ.get("RECONNECT")
    if program is None:
        skip("RECONNECT names no program")
    server = End("server", [program, B])
    wait_until("the server listens", lambda: status()["connection_management"]["listeners"], server.report)
    client = End("client", [program, B, "20000"])
    try:
        ask("all", "qp-error", "request=2000", "times=5", f"pid={client.process.pid}")
        if client.wait(SECONDS) != 0:
            fail(client.report())
        said = re.search(r"20000 calls, (\d+) connections", client.output())
        if said is None or int(said.group(1)) < 2:
            fail(client.report())
        print(f"PASS {said.group(0)}, {strikes()} strikes", flush=True)
    finally:
        client.kill()
        server.kill()
    nothing_left()


def rsockets():
    """rpoll() tells of the NIC's end. (rrecv() says the end of the stream by 0, of which rstream without "-T a" takes no
    notice while errno is EAGAIN.)"""
    words = ["rstream", "-T", "a", "-S", "4096", "-C", "1", "-I", "100000000"]
    ends = [End("server", [*words, "-b", B])]
    try:
        wait_until("the server listens", lambda: status()["connection_management"]["listeners"], ends[0].report)
        ends.append(End("client", [*words, "-s", B]))
        wait_for_traffic()
        ask("all", "kill")
        for end in ends:
            ends_with(end, "")
    finally:
        for end in ends:
            end.kill()


class UcxPair(Pair):
    def _start(self, name, host):
        environment = dict(os.environ, UCX_TLS="rc_verbs,ud_verbs:aux", UCX_NET_DEVICES=self.devices[name],
                           UCX_MAX_RNDV_RAILS="2", UCX_MAX_EAGER_RAILS="2", UCX_RC_TIMEOUT="10ms",
                           UCX_RC_RETRY_COUNT="3", UCX_HANDLE_ERRORS="none")
        client = self.arguments + host if name == "client" else []
        return End(name, [*ucx_perftest(), "-p", str(self.port), *client], environment)


def ucx_loses_one_of_two():
    """With two devices at either end, and big messages over both: UCX does not go on with one, it ends."""
    devices = "rocemu0:1,rocemu1:1"
    with UcxPair("ucx_perftest", ["-t", "tag_bw", "-s", "1000000", "-n", "1000000"], devices, devices) as pair:
        pair.start_server()
        pair.start_client()
        wait_for_traffic()
        ask("rocemu1", "no-traffic")
        deadline = time.monotonic() + SECONDS
        while all(end.code() is None for end in pair.ends()) and time.monotonic() < deadline:
            time.sleep(0.05)
        ended = [end for end in pair.ends() if end.code() is not None]
        if not ended or not any(re.search("Transport retry|timed out|error", end.output()) for end in ended):
            fail("neither end says that a device is lost\n" + pair.report())
        print("PASS ucx_perftest over two devices ends when it loses one", flush=True)
    nothing_left()


def mpi():
    """One rank's QPs fail: the job ends with UCX's and Open MPI's messages."""
    if "MPI_PROGRAMS" not in os.environ:
        skip("the MPI programs were not built (Debian package libopenmpi-dev)")
    words = mpirun([os.path.join(os.environ["MPI_PROGRAMS"], "ring"), "100"], 2, "rc_verbs,ud_verbs:aux,self")
    # The ranks exchange 1,000 messages each way: request 500 is far from the job's last one, of which nobody would hear.
    ask("rocemu1", "qp-error", "status=rem-op-err", "request=500", "program=ring")
    job = End("mpirun", words)
    try:
        ends_with(job, "Remote operation|(mpi|prte)run (noticed|detected)|Primary job")
    finally:
        job.kill()
    nothing_left()
    done = End("mpirun", words)
    if done.wait(SECONDS) != 0:
        fail(done.report())
    print("PASS mpirun afterwards", flush=True)


def received(device):
    return next(entry["counters"]["rx_frames"] for entry in status()["devices"] if entry["name"] == device)


def middle():
    return next(port for port in status()["network"] if port["port"] == "s0 to s1")


def pause_spreads():
    """Two pairs share the link in the middle of a lossless network. A storm of pauses at the receiver of one pair
    stops the other one as well, whose own links are free; nothing is lost, and both go on when it is over."""
    words = ["-F", "-s", "4096", "-D", "300", "-u", "20"]  # until they are ended
    pairs = [Pair("ib_write_bw", words, server, client) for server, client in (("rocemu2", "rocemu0"), ("rocemu3", "rocemu1"))]
    with pairs[0], pairs[1]:
        for pair in pairs:
            pair.start_server()
            pair.start_client()
        for device in ("rocemu2", "rocemu3"):
            wait_until("traffic", lambda: received(device) > 500)
        before = middle()
        ask("rocemu2", "pause", "direction=rx")
        wait_until("the pause reaches the middle", lambda: middle()["pauses_received"] > before["pauses_received"])
        time.sleep(0.1)  # what was behind it has come
        stopped = [received(device) for device in ("rocemu2", "rocemu3")]
        time.sleep(0.3)
        if [received(device) for device in ("rocemu2", "rocemu3")] != stopped:
            fail(f"frames still come: {stopped}, {status()['network']}")
        rocemu("fault", "clear", "all")
        for device, before_the_end in zip(("rocemu2", "rocemu3"), stopped):
            wait_until("traffic again", lambda: received(device) > before_the_end + 500)
        after = middle()
    if after["lost"] or after["paused_ns"] - before["paused_ns"] < 300_000_000:
        fail(str(after))
    print("PASS a pause spreads through the network, and goes", flush=True)
    nothing_left()


def start():
    """Faults of a NIC that starts: by option, and by its configuration file; and what is wrong with one."""
    opens = [sys.executable, "-c", "import subprocess, sys; sys.exit('rocemu0' not in subprocess.run("
             "['ibv_devinfo', '-d', 'rocemu0'], capture_output=True, text=True).stdout)"]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write('[[fault]]\ndevice = "rocemu0"\nwhat = "call-fails"\ncall = "open"\nnth = 1\n'
                     '[[fault]]\nwhat = "call-slow"\ncall = "open"\ndelay = "1ms"\n')
        config.flush()
        for options, code in (([], 0), (["--fault", "rocemu0 call-fails call=open errno=EACCES"], 1),
                              (["--fault", "rocemu1 call-fails call=open"], 0), (["--config", config.name], 1),
                              (["--fault", "rocemu0 explode"], 125), (["--fault", "rocemu7 kill"], 125),
                              # One more than a NIC has at a time.
                              (["--fault", "rocemu1 call-fails call=open"] * 257, 125)):
            done = subprocess.run([ROCEMU, "run", *options, "--", *opens], stderr=subprocess.PIPE, text=True)
            if done.returncode != code:
                fail(f"rocemu run {' '.join(options[:4])} ended with {done.returncode}, due is {code}\n{done.stderr}")
    for words, code in ((["list"], 0), (["clear", "99"], 2), (["rocemu0", "explode"], 2), (["rocemu9", "kill"], 2),
                        (["rocemu0", "port-down", "qp=3"], 2), (["clear", "all"], 0)):
        done = subprocess.run([ROCEMU, "fault", *words], capture_output=True, text=True)
        if done.returncode != code or len(done.stderr.splitlines()) != (1 if code else 0):
            fail(f"rocemu fault {' '.join(words)} ended with {done.returncode}\n{done.stderr}")
    print("PASS faults at start, and errors", flush=True)


CASES = {
    "start": start,
    "perftest:qp-error": perftest(["rocemu0", "qp-error", "status=rem-access-err", "program=ib_write_bw"],
                                  "status 10|remote access|Failed status"),
    "perftest:no-answer": perftest(["rocemu1", "no-answer", "program=ib_write_bw"], "status 12|retry|Failed status"),
    "perftest:cq-error": perftest(["rocemu0", "cq-error", "program=ib_send_bw"], "status|Failed|error", "ib_send_bw"),
    "perftest:device-fatal": perftest(["rocemu0", "device-fatal", "for=1s"], "status 5|Failed|error"),
    "rping": rping,
    "rping:removal": device_removal,
    "reconnect": reconnect,
    "rsockets": rsockets,
    "ucx": ucx_loses_one_of_two,
    "pause": pause_spreads,
    "mpi": mpi,
}
OPTIONS = {"pause": ["--devices", "4", "--network", os.path.dirname(SELF) + "/../networks/dumbbell.toml"]}
NEEDED = {"pause": ("ib_write_bw", "perftest"), "start": ("ibv_devinfo", "ibverbs-utils"), "perftest": ("ib_write_bw", "perftest"), "rping": ("rping", "rdmacm-utils"),
          "rsockets": ("rstream", "rdmacm-utils"),
          "ucx": ("ucx_perftest", "ucx-utils"), "mpi": ("mpirun", "openmpi-bin")}


def run_inside(name):
    CASES[name]()


def run(name):
    program, package = NEEDED.get(name.split(":")[0], ("sh", "dash"))
    if shutil.which(program) is None:
        skip(f"{program} is missing (Debian package {package})")
    if name in ("ucx", "mpi"):
        need_ucx_over_verbs()
    return subprocess.run([ROCEMU, "run", *OPTIONS.get(name, []), "--", SELF, "--inside", name]).returncode


sys.exit(main(SELF, sys.argv[1:], CASES, run, run_inside))
