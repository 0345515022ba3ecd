"""A trace as rocemud writes it (emulator/trace/format/record.h), for tests of what shows traces."""
import struct

RECORD = struct.Struct("<QQQIIIIIIBBBBHHHHI")
HEADER = struct.Struct("<8sIHHIIIIQQ48s32s")
NAME = struct.Struct("<Q40sBBBBHHHHI")
QPNS = (0x11, 0x12)
POSTED, TAKEN, PUSHED, POLLED = 20, 21, 22, 23
SENT, LOST, RECEIVED, TIMEOUT, ACKNOWLEDGED = 30, 31, 32, 44, 52
NONE = 0xFFFF


def name(table, number, text, detail=0):
    return NAME.pack(0, text.encode(), 1, table, 0, 1, number, 0, 0, 0, detail)


def record(ns, kind, device, *, wr_id=0, value=0, request=0, psn=0, length=0, count=0, cause=0, opcode=0, code=0,
           flags=0, peer=None, program=NONE, detail=0):
    peer = 1 - device if peer is None else peer
    return RECORD.pack(1_000_000 + ns, wr_id, value, request, QPNS[device], psn, QPNS[peer], length, count, kind, cause,
                       opcode, code, flags, device, peer, program, detail)


def exchange(ns, number):
    """A SEND of 1024 bytes and its ACK; every hundredth is lost first, and sent again after a timeout."""
    yield record(ns, POSTED, 0, wr_id=number, request=number, opcode=2, length=1024, program=0)
    yield record(ns + 200, TAKEN, 0, wr_id=number, request=number, opcode=2, length=1024)
    packet = {"psn": number & 0xFFFFFF, "opcode": 4, "length": 1024, "request": number}
    flags = 0
    if number % 100 == 0:
        yield record(ns + 300, SENT, 0, **packet)
        yield record(ns + 300, LOST, 0, cause=20, **{**packet, "program": 1})
        ns += 4_000_000
        yield record(ns, TIMEOUT, 0, psn=packet["psn"], count=1, detail=7)
        flags = 8
    yield record(ns + 400, SENT, 0, flags=flags, cause=1 if flags else 0, **packet)
    yield record(ns + 1400, RECEIVED, 1, **packet)
    ack = {"psn": packet["psn"], "opcode": 0x11, "code": 0x1F, "flags": 0x600}
    yield record(ns + 1500, SENT, 1, **ack)
    yield record(ns + 2500, RECEIVED, 0, **ack)
    yield record(ns + 2500, ACKNOWLEDGED, 0, request=number)
    yield record(ns + 2600, PUSHED, 0, wr_id=number, request=number, length=1024)
    yield record(ns + 3000, POLLED, 0, wr_id=number, request=number, length=1024)


def write(path, exchanges):
    with open(path, "wb") as file:
        file.write(HEADER.pack(b"RCMTRACE", 0x01020304, 1, 0, 128, 64, 1, 0, 1_000_000, 1_700_000_000_000_000_000,
                               b"a test", b""))
        for row in (name(1, 0, "rocemu0", 4096), name(1, 1, "rocemu1", 4096), name(2, 0, "10.77.0.1"),
                    name(2, 1, "10.77.0.2"), name(3, 0, "sender", 100), name(5, 1, "loss=1%")):
            file.write(row)
        ns = 0
        for number in range(1, exchanges + 1):
            file.writelines(exchange(ns, number))
            ns += 4_100_000 if number % 100 == 0 else 4000
