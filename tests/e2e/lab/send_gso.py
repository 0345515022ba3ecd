#!/usr/bin/python3 -B
"""Sends what a hostile peer can send to the RoCE port of a host on the same kernel: batches of datagrams (UDP GSO), which
reach the other NIC as one packet, whatever they are made of.

    send_gso.py sizes ADDRESS            batches of every segment size from 1 to 64 bytes, and of larger ones
    send_gso.py storm ADDRESS SECONDS    random ones, many a second, with mutated copies of what leaves this host
    send_gso.py raw ADDRESS MAC COUNT    packets whose headers and descriptions contradict each other

It prints how many datagrams it sent that may be RoCE frames by their length, and how many batches of longer ones; `raw`,
how many packets. `storm` and `raw` need CAP_NET_RAW. The seed is 1, so that a run can be repeated; what other programs send meanwhile is not the same, of course."""
import random
import select
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.append(sys.path[0] + "/../tools")
import check_pcap

ROCE_PORT = 4791
INTERFACE = "eth0"
UDP_SEGMENT = 103  # linux/udp.h
SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/if_packet.h
LARGE_SIZES = (65, 100, 255, 256, 272, 1040, 1068, 1452, 2064, 4095, 4096, 4112, 4128, 5000, 8000, 8900)
LONGEST = 4128  # of the sizes above that a frame may have
MOST_SEGMENTS = 64  # UDP_MAX_SEGMENTS of Linux until 6.8
MOST_BYTES = 64000
GSO_TYPES = (0, 1, 3, 4, 5, 0x85)  # none, TCPv4, UDP fragments, TCPv6, UDP segments, with ECN (linux/virtio_net.h)
CAPTURES = Path(__file__).resolve().parents[2] / "data" / "rxe-pcaps"

dice = random.Random(1)


def roce_payloads():
    """What stands behind the UDP header in captures of another implementation."""
    payloads = []
    for path in sorted(CAPTURES.glob("*.pcap")):
        for frame in list(check_pcap.frames(path))[:40]:
            packet, header = check_pcap.ip_packet(frame)
            payloads.append(packet[header + 8:])
    return payloads


def mutated(payload):
    data = bytearray(payload)
    for _ in range(dice.choice((0, 1, 1, 2, 8))):
        if data:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def segment(pool, size):
    """A segment of that size: noise, or a RoCE packet that was cut or lengthened."""
    if not pool or dice.random() < 0.3:
        return dice.randbytes(size)
    return mutated(dice.choice(pool))[:size].ljust(size, b"\0")


def batch(pool, size):
    count = dice.randint(1, max(1, min(MOST_SEGMENTS, MOST_BYTES // size)))
    segments = [segment(pool, size) for _ in range(count)]
    if dice.random() < 0.7:
        segments[-1] = segments[-1][:dice.randint(1, size)]
    return segments


class Peer:
    def __init__(self, address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect((address, ROCE_PORT))
        self.datagrams = self.too_long = 0

    def send(self, segments, size):
        """Segments of that size, the last may be shorter. What the kernel does not let out is not counted."""
        try:
            self.socket.sendmsg([b"".join(segments)], [(socket.SOL_UDP, UDP_SEGMENT, struct.pack("=H", size))])
        except OSError:
            return
        if size > LONGEST:
            self.too_long += 1
        else:
            self.datagrams += len(segments)


def sizes(address):
    peer = Peer(address)
    pool = roce_payloads()
    for size in (*range(1, 65), *LARGE_SIZES):
        for _ in range(6):
            peer.send(batch(pool, size), size)
            time.sleep(0.002)  # not faster than a NIC that shares its core takes it
    print(peer.datagrams, peer.too_long)


def storm(address, seconds):
    """GSO batches, a few thousand a second, of frames of this moment as well."""
    peer = Peer(address)
    pool = roce_payloads()
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    ear.bind((INTERFACE, 3))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            size = dice.choice((dice.randint(1, 64), dice.choice(LARGE_SIZES), len(dice.choice(pool)) or 1))
            peer.send(batch(pool, size), size)
        time.sleep(0.005)
        while select.select([ear], [], [], 0)[0]:
            overheard = roce_payload_of(ear.recv(65600))
            if not overheard:
                continue
            pool.append(overheard[:4200])
            if len(pool) > 2000:
                pool = pool[1000:]
            break
    print(peer.datagrams, peer.too_long)


def roce_payload_of(frame):
    start = {b"\x08\x00": 14 + 20, b"\x86\xdd": 14 + 40}.get(frame[12:14])
    is_roce = start and frame[start + 2:start + 4] == struct.pack(">H", ROCE_PORT)
    return frame[start + 8:] if is_roce else b""


def raw(address, mac, count):
    """Ethernet frames with a description in front (struct virtio_net_hdr), as a virtual machine hands them to a tap."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    wire.bind((INTERFACE, 0))
    pool = roce_payloads()
    target = socket.getaddrinfo(address, None)[0]
    sent = 0
    for _ in range(count):
        time.sleep(0.0005)
        frame, headers = raw_frame(target[0], socket.inet_pton(target[0], address), bytes.fromhex(mac.replace(":", "")),
                                   pool)
        try:
            wire.send(description(frame, headers) + frame)
            sent += 1
        except OSError:
            pass
    print(sent)


def description(frame, headers):
    """Struct virtio_net_hdr: of a whole datagram, of a batch, or of nothing that can be."""
    kind = dice.choice(("datagram", "batch", "batch", "nothing"))
    if kind == "datagram":
        return bytes(10)
    sizes = (1, 2, 15, 16, 272, 1040, 4112, max(1, len(frame) - headers))
    if kind == "batch":
        return struct.pack("=BBHHHH", 1, 5, headers, dice.choice(sizes) & 0xffff, headers - 8, 6)
    return struct.pack("=BBHHHH", dice.choice((0, 1)), dice.choice(GSO_TYPES), dice.choice((0, headers, 65535)),
                       dice.choice((0, dice.randint(0, 65535))), dice.choice((headers - 8, 0, 34)), dice.choice((6, 0, 16)))


def raw_frame(family, address, mac, pool):
    """A frame, more often than not with something wrong in it, and where its UDP payload starts."""
    payload = b"".join(batch(pool, dice.choice((1, 3, 16, 17, 64, 272, 1040, 4112))))[:dice.choice((0, 8, 3000, 60000))]
    wrong = dice.choice(("nothing",) * 4 + ("length", "udp length", "options", "fragment", "checksum", "tag"))
    udp_bytes = 8 + len(payload) if wrong != "udp length" else dice.randint(0, 65535)
    udp = struct.pack(">HHHH", dice.randint(1, 65535), ROCE_PORT, udp_bytes & 0xffff,
                      dice.randint(0, 65535) if wrong == "checksum" else 0)
    length = 8 + len(payload) if wrong != "length" else dice.randint(0, 65000)
    if family == socket.AF_INET:
        version, options = (0x46, b"\x01" * 4) if wrong == "options" else (0x45, b"")
        fragment = dice.choice((0x2000, 0x2001, 5)) if wrong == "fragment" else 0x4000
        header = struct.pack(">BBHHHBBH4s4s", version, 0, (20 + len(options) + length) & 0xffff, 0, fragment, 64, 17, 0,
                             bytes((10, 99, 0, 2)), address) + options
        total = check_pcap.ones_complement_sum(header)
        header = header[:10] + struct.pack(">H", total ^ 0xffff) + header[12:]
        ether_type = b"\x08\x00"
    else:
        extension = {"options": (0, bytes((17, 0, 1, 4, 0, 0, 0, 0))), "fragment": (44, bytes((17, 0, 0, 1, 0, 0, 0, 1)))}
        following, more = extension.get(wrong, (17, b""))
        header = struct.pack(">IHBB", 6 << 28, (len(more) + length) & 0xffff, following, 64)
        header += socket.inet_pton(socket.AF_INET6, "fd99::2") + address + more
        ether_type = b"\x86\xdd"
    tag = b"\x81\x00\x00\x01" if wrong == "tag" else b""
    start = mac + b"\2\0\0\0\0\x63" + tag + ether_type + header
    return start + udp + payload, len(start) + 8


def main():
    kind, address, *words = sys.argv[1:]
    if kind == "sizes":
        sizes(address)
    elif kind == "storm":
        storm(address, float(words[0]))
    else:
        raw(address, words[0], int(words[1]))


if __name__ == "__main__":
    main()
