#!/usr/bin/python3 -B
"""Raw packet QPs on ports on network interfaces, beside the kernel.

    raw_packets.py [--user] CASE...      (none: all)

--user  as an ordinary user without any capability, in a user namespace (started by root)

ROCEMU names the rocemu command to use. Exit code 77: it cannot be run here."""
import json
import struct
import subprocess
import sys
from pathlib import Path

sys.path.append(sys.path[0] + "/../tools")
from lab_hosts import Failed, Lab, need, wait_until, words_as_user
from program_cases import ROCEMU, skip

RAW_FRAMES = str(Path(__file__).resolve().with_name("raw_frames.py"))
PORT = 5005
H1, H2 = "10.99.0.1", "10.99.0.2"
SEND_DATAGRAM = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x' * 1001, ('{H1}', {PORT}))"
TAKE_DATAGRAM = ("import socket; taker = socket.socket(type=socket.SOCK_DGRAM); taker.settimeout(20); "
                 f"taker.bind(('', {PORT})); print('ready', flush=True); print(taker.recv(2000).decode())")
SEND_FRAME = ("import socket, sys; sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); "
              "sender.bind(('eth0', 0)); sender.send(bytes.fromhex(sys.argv[1]))")


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mac(lab, host):
    return bytes.fromhex(lab.on(host, "cat", "/sys/class/net/eth0/address").strip().replace(":", ""))


def ipv4(address):
    return bytes(map(int, address.split(".")))


def datagram(lab, text):
    """A frame from h1 to h2, without a UDP checksum."""
    udp = struct.pack(">4H", 1234, PORT, 8 + len(text), 0) + text
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ipv4(H1) + ipv4(H2)
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return mac(lab, "h2") + mac(lab, "h1") + b"\x08\x00" + head + udp


class Collected:
    """What a raw packet QP on h1 gets meanwhile."""

    def __init__(self, lab):
        self.lab = lab
        self.running = lab.start("h1", RAW_FRAMES, "collect")
        wait_until("the flow", lambda: "ready" in self.running.output() or self.running.process.poll() is not None)

    def frames(self):
        last = b"\xff" * 6 + mac(self.lab, "h2") + b"\x88\xb6" + bytes(46)
        self.lab.on("h2", "/usr/bin/python3", "-c", SEND_FRAME, last.hex())
        return [bytes.fromhex(line) for line in self.running.must_end_well().split()[1:]]


def some(frames, what, condition):
    found = [frame for frame in frames if condition(frame)]
    if not found:
        raise Failed(f"no {what} among {len(frames)} frames")
    return found


def copies(lab):
    """The kernel answers pings and takes datagrams, and the QP has copies of them, with their checksums."""
    taker = lab.start("h1", "/usr/bin/python3", "-c", TAKE_DATAGRAM)
    wait_until("the socket", lambda: "ready" in taker.output())
    collected = Collected(lab)
    lab.on("h2", "ping", "-c", "3", "-i", "0.2", H1)
    lab.on("h2", "/usr/bin/python3", "-c", SEND_DATAGRAM)
    if "x" * 1001 not in taker.must_end_well():
        raise Failed("the kernel's socket got something else")
    frames = collected.frames()
    pings = some(frames, "ping", lambda f: f[12:14] == b"\x08\x00" and f[23] == 1 and f[34] == 8)
    if len(pings) != 3 or any(checksum(ping[34:]) != 0 for ping in pings):
        raise Failed(f"{len(pings)} pings, or wrong ones")
    for frame in some(frames, "datagram", lambda f: f[12:14] == b"\x08\x00" and f[23] == 17 and f.endswith(b"x" * 1001)):
        if checksum(frame[26:34] + struct.pack(">HH", 17, len(frame) - 34) + frame[34:]) != 0:
            raise Failed("the datagram's checksum is wrong")


def tagged(lab):
    """A VLAN tag is in the frame, as it was on the wire, although the kernel takes it out."""
    frame = b"\xff" * 6 + mac(lab, "h2") + b"\x81\x00\xa0\x05" + b"\x88\xb5" + b"in a VLAN".ljust(46)
    collected = Collected(lab)
    lab.on("h2", "/usr/bin/python3", "-c", SEND_FRAME, frame.hex())
    some(collected.frames(), "tagged frame", lambda f: f == frame)


def sent(lab):
    """What the QP sends leaves as it is; the kernel at the other end takes it. RoCE goes on meanwhile."""
    taker = lab.start("h2", "/usr/bin/python3", "-c", TAKE_DATAGRAM)
    wait_until("the socket", lambda: "ready" in taker.output())
    collected = Collected(lab)
    lab.pair("ib_write_bw", "-F", "-n", "1000")
    lab.on("h1", RAW_FRAMES, "send", datagram(lab, b"by a raw packet QP").hex())
    if "by a raw packet QP" not in taker.must_end_well():
        raise Failed("the kernel's socket got something else")
    if any(frame[36:38] == (4791).to_bytes(2, "big") for frame in collected.frames() if frame[23] == 17):
        raise Failed("a RoCE frame came to a QP without a sniffer")


def sockets(lab):
    return len(lab.on("h1", "cat", "/proc/net/packet").splitlines()) - 1


def received(lab):
    return json.loads(lab.on("h1", ROCEMU, "status", "--json"))["devices"][0]["port"]["rx_frames"]


def came_with_pings(lab):
    before = received(lab)
    lab.on("h2", "ping", "-c", "5", "-i", "0.2", H1)
    return received(lab) - before


def turns(lab):
    return json.loads(lab.on("h1", ROCEMU, "status", "--json"))["engine"]["turns"]


def ended(lab):
    """Without a flow the NIC gets no copies, and however often there is one, it has one socket for them."""
    if sockets(lab) != 1:
        raise Failed("there is a socket for copies, and was no flow yet")
    for _ in range(5):
        Collected(lab).frames()
    if sockets(lab) != 2:
        raise Failed(f"{sockets(lab)} sockets after five flows")
    # The NIC may not have heard yet that the last program has ended.
    wait_until("the end of copies", lambda: not came_with_pings(lab))

    # Nor is it kept awake by the socket that it does not read.
    lab.on("h1", "ip", "link", "set", "eth0", "down")
    before = turns(lab)
    lab.on("h1", "sleep", "1")
    if turns(lab) - before > 5000:
        raise Failed(f"{turns(lab) - before} turns in a second without anything to do")


def perftest(lab, *words):
    """Between the hosts."""
    macs = {host: mac(lab, host).hex(":") for host in ("h1", "h2")}
    words = [*words, "-F", "-d", "rocemu0"]
    server = lab.start("h1", *words, "--server", "-E", macs["h2"], "-B", macs["h1"])
    wait_until("the server's flow", lambda: sockets(lab) > 1)
    lab.on("h2", *words, "--client", "-E", macs["h1"], "-B", macs["h2"])
    server.must_end_well()


def bandwidth(lab):
    """raw_ethernet_bw between the hosts."""
    perftest(lab, "raw_ethernet_bw", "-s", "1024", "-D", "2")


def latency(lab):
    """raw_ethernet_lat between the hosts."""
    perftest(lab, "raw_ethernet_lat", "-s", "64", "-n", "200")


CASES = {case.__name__: case for case in (copies, tagged, sent, ended, bandwidth, latency)}


def run(name):
    with Lab(f"raw-{name}-") as lab:
        CASES[name](lab)
    print(f"PASS {name}: {CASES[name].__doc__.splitlines()[0]}", flush=True)


def main():
    words = words_as_user(__file__)
    need(ip="iproute2", ib_write_bw="perftest", ping="iputils-ping")
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs.qp"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("rdma-core's Python bindings are missing (Debian package python3-pyverbs)")
    for name in words or CASES:
        try:
            run(name)
        except (Failed, subprocess.SubprocessError) as why:
            sys.exit(f"FAIL {name}: {why}")


if __name__ == "__main__":
    main()
