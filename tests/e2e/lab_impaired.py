#!/usr/bin/python3 -B
"""A lab whose wire is bad: what its hosts send by TCP is impaired just as what they send by RoCE.

    lab_impaired.py [--user]     --user: as an ordinary user without any capability (started by root)

ROCEMU names the rocemu command to use. Exit code 77: it cannot be run here."""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SKIPPED = 77
ROCEMU = os.environ.get("ROCEMU", "rocemu")
LAB = f"bad{os.getpid()}"
LIMIT_SECONDS = 60
DELAY_MS = 15
LATE_MS = 200  # a round trip on a loaded machine has been answered by then, or the median is not the wire's
BYTES = 2_000_000

SERVER = """
import socket
listener = socket.create_server(("", 7777))
print("ready", flush=True)
peer, _ = listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := peer.recv(65536):
    peer.sendall(data)
"""
ROUND_TRIPS = """
import socket, sys, time
peer = socket.create_connection(("h1", 7777))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(11):
    before = time.monotonic()
    peer.sendall(b"x")
    peer.recv(1)
    times.append(time.monotonic() - before)
print(sorted(times)[5] * 1e3)
"""
BULK = f"""
import hashlib, random, socket, threading
data = random.Random(1).randbytes({BYTES})
peer = socket.create_connection(("h1", 7777))
threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR))).start()
back = b""
while part := peer.recv(65536):
    back += part
print(hashlib.sha256(back).hexdigest() == hashlib.sha256(data).hexdigest())
"""


class Failed(Exception):
    pass


def command(host, *words):
    return [ROCEMU, "lab", "exec", "--name", LAB, host, "--", *words]


def on(host, *words):
    done = subprocess.run(command(host, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        raise Failed(f"{host}: {' '.join(words)}: {done.stdout}")
    return done.stdout


def by_tcp(client):
    """What a client on h2 of the server on h1 prints."""
    with subprocess.Popen(command("h1", sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True) as server:
        try:
            server.stdout.readline()
            return on("h2", sys.executable, "-c", client).strip()
        finally:
            server.kill()


def by_roce(*words):
    with subprocess.Popen(command("h1", *words), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as server:
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not re.search(":4853 [0-9A-F]+:0000 0A", on("h1", "cat", "/proc/net/tcp", "/proc/net/tcp6")):
                if time.monotonic() > deadline:
                    raise Failed(f"{words[0]} does not listen")
                time.sleep(0.05)
            printed = on("h2", *words, "h1")
            if server.wait(LIMIT_SECONDS) != 0:
                raise Failed(f"the server of {words[0]} ended with {server.returncode}")
            return printed
        finally:
            server.kill()


def lab(*impairments):
    words = [word for spec in impairments for word in ("--impair", spec)]
    subprocess.run([ROCEMU, "lab", "up", "--name", LAB, "--hosts", "2", *words], check=True, timeout=LIMIT_SECONDS)


def down():
    folder = Path(f"/tmp/rocemu-lab-{os.getuid()}") / LAB
    pids = [Path("/proc") / file.read_text(encoding="ascii").strip() for file in (folder / "pids").glob("*")]
    subprocess.run([ROCEMU, "lab", "down", "--name", LAB], check=True, timeout=LIMIT_SECONDS)
    deadline = time.monotonic() + 10
    while left := [pid for pid in pids if pid.exists() and "Z (zombie)" not in (pid / "status").read_text()]:
        if time.monotonic() > deadline:
            raise Failed(f"lab down left {left}")
        time.sleep(0.05)
    if folder.exists():
        raise Failed("lab down left files")


def delay():
    """A delay in each direction is in the round trips of both."""
    lab(f"delay={DELAY_MS}ms")
    tcp_ms = float(by_tcp(ROUND_TRIPS))
    rows = [line.split() for line in by_roce("ib_send_lat", "-F", "-n", "20").splitlines()]
    roce_ms = 2 * float(next(row[4] for row in rows if row[:1] == ["2"])) / 1e3
    print(f"round trips: TCP {tcp_ms:.1f} ms, RoCE {roce_ms:.1f} ms")
    for what, seen in (("TCP", tcp_ms), ("RoCE", roce_ms)):
        if not 2 * DELAY_MS <= seen < LATE_MS:
            raise Failed(f"a round trip by {what} took {seen} ms, with {DELAY_MS} ms each way")


def loss():
    """Both get everything through a wire that loses, doubles and changes frames; both have to send again."""
    lab("loss=3%,dup=1%,corrupt=1%", "h2.rx:reorder=2%")
    if by_tcp(BULK) != "True":
        raise Failed("other bytes came by TCP than were sent")
    again = int(re.search(r"Tcp: .*\nTcp: (.*)", on("h2", "cat", "/proc/net/snmp"))[1].split()[11])
    by_roce("ibv_rc_pingpong", "-g", "1", "-c", "-n", "50", "-s", "20000")
    lost = int(re.search(r'"retransmitted_frames": (\d+)', on("h2", ROCEMU, "status", "--json"))[1])
    print(f"sent again: TCP {again} segments, RoCE {lost} frames")
    if again == 0 or lost == 0:
        raise Failed("nothing had to be sent again")


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(SKIPPED)


def main():
    if sys.argv[1:] == ["--user"]:
        if os.getuid() != 0:
            skip("not root: everything runs as an ordinary user already")
        environment = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
        os.execvpe("setpriv", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all",
                               "--inh-caps=-all", "--no-new-privs", sys.executable, "-B", os.path.abspath(__file__)],
                   {**environment, "HOME": "/"})
    for program, package in (("ip", "iproute2"), ("ib_send_lat", "perftest"), ("ibv_rc_pingpong", "ibverbs-utils")):
        if shutil.which(program) is None:
            skip(f"{program} is missing (Debian package {package})")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun is not there or not writable")
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *user, "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespaces can be made here")
    for case in (delay, loss):
        try:
            case()
            down()
            print(f"PASS {case.__doc__}", flush=True)
        except (Failed, subprocess.SubprocessError) as why:
            subprocess.run([ROCEMU, "lab", "down", "--name", LAB], check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            sys.exit(f"FAIL {case.__name__}: {why}")


if __name__ == "__main__":
    main()
