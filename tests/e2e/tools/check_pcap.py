#!/usr/bin/python3 -B
"""Checks captures of a NIC's link: every frame is a whole RoCEv2 packet, its invariant CRC is right,
and tshark dissects it as RRoCE without finding it malformed. Behind the UDP datagram there may be path
telemetry (docs/congestion.md), and nothing else.

The CRC is computed here, from IBTA annex A17 and zlib alone, so that a mistake in the NIC's own code
is not repeated. tshark shows that CRC but does not check it.

Exit codes: 0 all right, 1 not, 77 tshark is missing (everything else was right)."""
import argparse
import collections
import shutil
import struct
import subprocess
import sys
import zlib

ROCE_PORT = 4791
SKIPPED = 77
MOST_SHOWN = 10  # complaints about one file


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def frames(path):
    """The frames of a classic pcap file (microseconds or nanoseconds, either byte order)."""
    with open(path, "rb") as file:
        data = file.read()
    magics = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<",
              b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
    order = magics.get(data[:4])
    need(order and len(data) >= 24, "not a pcap file")
    major, link_type = struct.unpack(order + "H14xI", data[4:24])
    need(major == 2 and link_type == 1, f"pcap version {major}, link type {link_type}: must be 2 and 1 (Ethernet)")
    at = 24
    while at < len(data):
        need(at + 16 <= len(data), "the file ends within a record header")
        captured, original = struct.unpack(order + "II", data[at + 8:at + 16])
        need(captured == original, f"a frame was cut from {original} to {captured} bytes")
        need(at + 16 + captured <= len(data), "the file ends within a frame")
        yield data[at + 16:at + 16 + captured]
        at += 16 + captured


def ones_complement_sum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def ip_packet(frame):
    """The IP packet without the padding of a short Ethernet frame, and the length of its header."""
    need(len(frame) >= 14 + 20, "shorter than Ethernet and IP headers")
    ethertype = frame[12:14]
    if ethertype == b"\x08\x00":
        need(frame[14] == 0x45, "IPv4 with another version or with options")
        size, header, protocol = struct.unpack(">H", frame[16:18])[0], 20, frame[23]
        need(ones_complement_sum(frame[14:34]) == 0xffff, "wrong IPv4 header checksum")
    elif ethertype == b"\x86\xdd":
        need(frame[14] >> 4 == 6, "IPv6 with another version")
        size, header, protocol = 40 + struct.unpack(">H", frame[18:20])[0], 40, frame[20]
    else:
        raise Bad(f"EtherType {ethertype.hex()}")
    need(protocol == 17, f"IP protocol {protocol}")
    need(len(frame) == 14 + size or (len(frame) == 60 and 14 + size < 60),
         f"an IP packet of {size} bytes in a frame of {len(frame)}")
    return frame[14:14 + size], header


def check_telemetry(surplus):
    """What stands between the end of the UDP datagram and that of the IP packet."""
    need(len(surplus) >= 12 and (len(surplus) - 12) % 16 == 0, f"{len(surplus)} bytes behind the datagram")
    checksum, kind, length, experiment, returns, passed = struct.unpack(">HBBHBB", surplus[:8])
    need((checksum, kind, length, experiment) == (0, 127, len(surplus) - 2, 0x524f) and returns <= 1,
         f"what stands behind the datagram is no path telemetry: {surplus[:8].hex()}")
    room = (len(surplus) - 12) // 16
    need(surplus[12 + 16 * min(passed, room):].count(0) == 16 * (room - min(passed, room)),
         f"{passed} switches passed, and more hops are filled in")


def invariant_crc(packet, header):
    """Of the packet from its IP header on, its own last 4 bytes left out: as they go on the wire."""
    masked = bytearray(packet)
    if header == 20:
        masked[1] = 0xff  # TOS
        masked[8] = 0xff  # TTL
        masked[10:12] = b"\xff\xff"  # header checksum
    else:
        masked[0] |= 0x0f  # traffic class, flow label
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xff  # hop limit
    masked[header + 6:header + 8] = b"\xff\xff"  # UDP checksum
    masked[header + 8 + 4] = 0xff  # FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def check_frame(frame):
    """Returns BTH opcode and CRC (as tshark prints it). Raises Bad."""
    packet, header = ip_packet(frame)
    need(len(packet) >= header + 8 + 12 + 4, "too short for UDP, BTH and ICRC")
    destination, udp_size = struct.unpack(">HH", packet[header + 2:header + 6])
    need(destination == ROCE_PORT, f"UDP destination port {destination}")
    need(8 + 12 + 4 <= udp_size <= len(packet) - header,
         f"UDP length {udp_size} in an IP payload of {len(packet) - header}")
    if udp_size != len(packet) - header:
        check_telemetry(packet[header + udp_size:])
        packet = packet[:header + udp_size]
    bth = packet[header + 8:header + 20]
    need(bth[1] & 0x0f == 0, "transport header version is not 0")
    need((udp_size - 8) % 4 == 0, "headers, payload and padding are not a multiple of 4 bytes")
    carried, computed = packet[-4:], invariant_crc(packet[:-4], header)
    need(carried == computed, f"ICRC is {carried.hex()}, must be {computed.hex()}")
    return bth[0], int.from_bytes(carried, "big")


def check_with_python(path, complain):
    """Returns a list with an (opcode, crc) for each frame."""
    seen = []
    try:
        for number, frame in enumerate(frames(path), 1):
            try:
                seen.append(check_frame(frame))
            except Bad as bad:
                seen.append(None)
                complain(f"frame {number}: {bad}")
    except Bad as bad:
        complain(f"after {len(seen)} frames: {bad}")
    return seen


def without_payload_guesses():
    """Options against tshark's guesses at what the payload of a message is: random bytes may look like
    a malformed packet of some storage protocol, which says nothing about the frame."""
    listing = subprocess.run(["tshark", "-G", "heuristic-decodes"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=True).stdout
    rows = [line.split("\t") for line in listing.splitlines()]
    options = ["--disable-heuristic", "eth_over_ib"]
    for row in rows:
        if row[0] == "infiniband.payload" and row[1] != "ethertype":
            options += ["--disable-protocol", row[1]]
    return options


def check_with_tshark(path, seen, complain):
    fields = ["frame.number", "_ws.col.Protocol", "frame.protocols", "infiniband.bth.opcode",
              "infiniband.invariant.crc", "_ws.malformed"]
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "occurrence=f", *without_payload_guesses()]
    for field in fields:
        command += ["-e", field]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        complain(f"tshark ended with {result.returncode}: {result.stderr.strip()}")
        return
    rows = result.stdout.splitlines()
    if len(rows) != len(seen):
        complain(f"tshark sees {len(rows)} frames, there are {len(seen)}")
    for row, ours in zip(rows, seen):
        number, protocol, protocols, opcode, crc, malformed = (row.split("\t") + [""] * 6)[:6]
        if protocol != "RRoCE" or "infiniband" not in protocols.split(":"):
            complain(f"frame {number}: tshark calls it {protocol} ({protocols})")
        elif malformed:
            complain(f"frame {number}: tshark finds it malformed: {malformed}")
        elif ours and (int(opcode, 0), int(crc, 0)) != ours:
            complain(f"frame {number}: tshark reads opcode {opcode} and ICRC {crc}, not {ours[0]} and {ours[1]:#010x}")


def check_file(path, required, with_tshark):
    complaints = []
    seen = check_with_python(path, complaints.append)
    if not seen:
        complaints.append("no frames")
    opcodes = collections.Counter(frame[0] for frame in seen if frame)
    missing = [opcode for opcode in required if opcode not in opcodes]
    if missing:
        complaints.append(f"no frame with BTH opcode {missing}; there are {dict(sorted(opcodes.items()))}")
    if with_tshark and seen:
        check_with_tshark(path, seen, complaints.append)
    for text in complaints[:MOST_SHOWN]:
        print(f"FAIL {path}: {text}")
    if len(complaints) > MOST_SHOWN:
        print(f"FAIL {path}: and {len(complaints) - MOST_SHOWN} more")
    if not complaints:
        print(f"PASS {path}: {len(seen)} frames, every ICRC right; opcodes {dict(sorted(opcodes.items()))}")
    return not complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--require", default="", metavar="OPCODES",
                        help="BTH opcodes, separated by commas, that must occur in each file")
    parser.add_argument("--no-tshark", action="store_true", help="only the checks made here")
    arguments = parser.parse_args()
    required = [int(text, 0) for text in arguments.require.split(",") if text]
    tshark = shutil.which("tshark") is not None
    fine = True
    for path in arguments.files:
        fine &= check_file(path, required, tshark and not arguments.no_tshark)
    if not fine:
        return 1
    if not tshark and not arguments.no_tshark:
        print("SKIP: tshark is missing (Debian package tshark), its dissection was not checked")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
