"""Reads a trace (emulator/trace/format/record.h)."""
import struct
from collections import namedtuple

HEADER = struct.Struct("<8sIHHIIIIQQ48s32x")
RECORD = struct.Struct("<QQQIIIIIIBBBBHHHHI")
NAME = struct.Struct("<Q40sBBBBH6xI")
KINDS = {1: "name", 2: "started", 3: "stopped", 4: "lost", 10: "program_began", 11: "program_ended", 12: "qp_created",
         13: "qp_destroyed", 14: "qp_state", 20: "posted", 21: "taken", 22: "completion_pushed", 23: "completion_polled",
         24: "completion_lost", 30: "packet_sent", 31: "packet_lost", 32: "packet_received", 33: "packet_refused",
         34: "packet_dropped", 40: "nak_sent", 41: "nak_received", 42: "rnr_sent", 43: "rnr_received", 44: "ack_timeout",
         45: "retransmission", 46: "implied_nak", 47: "duplicate", 48: "out_of_sequence", 49: "placed_ahead",
         50: "stale_ack", 51: "data_placed", 52: "acknowledged", 53: "congestion", 54: "waits", 60: "cm_sent",
         61: "cm_received", 70: "counter"}
DEVICE, ADDRESS, PROGRAM, RULE, IMPAIRMENT, COUNTER = 1, 2, 3, 4, 5, 6
BY_DEATH = 42  # a Cause
RECEIVE, SHARED, EXISTED, RETRANSMISSION, NICS_TIME, POSTED = 1, 2, 4, 8, 1 << 12, 1 << 14

Record = namedtuple("Record", "time wr_id value request qpn psn peer_qpn length count kind cause opcode code flags device "
                              "peer_device program detail")


class Trace:
    def __init__(self, path):
        data = open(path, "rb").read()
        magic, order, self.major, self.minor, header_bytes, record_bytes, _, self.flags, self.start, _, creator = \
            HEADER.unpack_from(data)
        assert magic == b"RCMTRACE" and order == 0x01020304 and self.major == 1, path
        assert (header_bytes, record_bytes) == (128, RECORD.size) and len(data) % record_bytes == 0, path
        assert creator.startswith(b"rocemud "), creator
        self.names, self.records = {}, []
        for at in range(header_bytes, len(data), record_bytes):
            if data[at + 48] == 1:
                _, text, _, table, part, _, number, detail = NAME.unpack_from(data, at)
                before = self.names[table, number][0] if part else ""
                self.names[table, number] = (before + text.rstrip(b"\0").decode(), detail)
                continue
            record = Record(*RECORD.unpack_from(data, at))
            record = record._replace(kind=KINDS[record.kind])
            if record.kind == "taken" and record.flags & POSTED:
                self.records.append(record._replace(kind="posted", time=record.time - record.count, value=0, detail=0,
                                                    peer_qpn=0, code=0, count=0, flags=record.flags & ~POSTED))
                record = record._replace(flags=record.flags & ~(POSTED | NICS_TIME), count=0)
            self.records.append(record)
        self.records.sort(key=lambda record: record.time)

    def of(self, kind, **fields):
        return [record for record in self.records if record.kind == kind and
                all(getattr(record, name) == value for name, value in fields.items())]

    def name(self, table, number):
        return self.names[table, number][0]
