#!/usr/bin/python3 -B
"""A lab whose wire is bad, or a network: what its hosts send by TCP meets it just as what they send by RoCE.

    lab_impaired.py [--user]     --user: as an ordinary user without any capability (started by root)

ROCEMU names the rocemu command to use. Exit code 77: it cannot be run here."""
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/../tools")
from lab_hosts import Failed, Lab, need, words_as_user
from program_cases import skip

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


def by_tcp(lab, client):
    """What a client on h2 of the server on h1 prints."""
    with subprocess.Popen(lab.command("h1", sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True) as server:
        try:
            server.stdout.readline()
            return lab.on("h2", sys.executable, "-c", client).strip()
        finally:
            server.kill()


def delay(lab):
    """A delay in each direction is in the round trips of both."""
    tcp_ms = float(by_tcp(lab, ROUND_TRIPS))
    rows = [line.split() for line in lab.pair("ib_send_lat", "-F", "-n", "20").splitlines()]
    roce_ms = 2 * float(next(row[4] for row in rows if row[:1] == ["2"])) / 1e3
    print(f"round trips: TCP {tcp_ms:.1f} ms, RoCE {roce_ms:.1f} ms")
    for what, seen in (("TCP", tcp_ms), ("RoCE", roce_ms)):
        if not 2 * DELAY_MS <= seen < LATE_MS:
            raise Failed(f"a round trip by {what} took {seen} ms, with {DELAY_MS} ms each way")


def loss(lab):
    """Both get everything through a wire that loses, doubles and changes frames; both have to send again."""
    if by_tcp(lab, BULK) != "True":
        raise Failed("other bytes came by TCP than were sent")
    again = int(re.search(r"Tcp: .*\nTcp: (.*)", lab.on("h2", "cat", "/proc/net/snmp"))[1].split()[11])
    # Not ibv_rc_pingpong, which ends when it has all it wants, be its last ACK lost or not: the peer then fails.
    lab.pair("ib_send_bw", "-F", "-n", "50", "-s", "20000")
    lost = lab.device("h2")["counters"]["retransmitted_frames"]
    print(f"sent again: TCP {again} segments, RoCE {lost} frames")
    if again == 0 or lost == 0:
        raise Failed("nothing had to be sent again")


def network(lab):
    """A network of switches is what both cross: its delays, four links each way, are in the round trips."""
    delay(lab)


CASES = {network: ("--network", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../networks/slow_leaves.toml")),
         delay: ("--impair", f"delay={DELAY_MS}ms"),
         loss: ("--impair", "loss=3%,dup=1%,corrupt=1%", "--impair", "h2.rx:reorder=2%")}


def main():
    words_as_user(__file__)
    need(ip="iproute2", ib_send_lat="perftest")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun is not there or not writable")
    for case, words in CASES.items():
        try:
            with Lab("bad", *words) as lab:
                case(lab)
                lab.down()
        except (Failed, subprocess.SubprocessError) as why:
            sys.exit(f"FAIL {case.__name__}: {why}")
        print(f"PASS {case.__doc__}", flush=True)


if __name__ == "__main__":
    main()
