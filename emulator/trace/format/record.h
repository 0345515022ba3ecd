// One event of a trace, and the header of the file that holds them. Both have a fixed size and are
// written as they lie in memory; the header says in which byte order that was.
//
// A record's fields mean what the comment of its Kind says. What a comment does not name is 0 and
// means nothing, but for `time_ns`, `device` and `qpn`, which all records of a QP have. New kinds,
// causes, flags and fields in what is reserved are the only changes within a major version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu::trace {

// Where the comments speak of a program's requests, `wr_id` is the program's own, and `request`
// counts those of one queue that the NIC has taken: the first one is 1 or, of a QP that is older
// than the trace, the oldest that was under way when it began. It wraps at 2^32. Send and receive
// queues count for themselves (flag::kReceiveQueue); receives of an SRQ are counted by QP.
enum class Kind : uint8_t {
  none = 0,  // in no file

  // The trace itself.
  name = 1,     // a number that records have stands for a text: see NameRecord
  started = 2,  // from here on all that the filters let through is recorded
  stopped = 3,  // why: Cause
  lost = 4,     // `value` records found no room, before this one and after the one before it

  // Programs and objects. What existed when the trace began is told then, with flag::kExisted.
  program_began = 10,  // `program` opened `device`
  program_ended = 11,  // `program` closed `device`, or died: Cause
  qp_created = 12,     // `program`; `code`: verbs::qp_type; `count`, `length_bytes`: numbers of the
                       // CQs for sends and for receives, where it has one of its own (0: it has
                       // not, as an XRC receiver); `detail`: of the SRQ, if kShared
  qp_destroyed = 13,   // `program`
  qp_state = 14,  // `code`: the new verbs::QpState; of connected QPs `peer_qpn`, `peer_device`;
                  // `psn`: with RTR the first that is expected, with RTS the first that is sent;
                  // `length_bytes`: path MTU; `count`: QpTimers; Cause: who changed it

  // Requests. `program`: whose the QP is. `opcode` of a send queue's is a verbs::wr_opcode.
  posted = 20,  // the program called post: `wr_id`, `request`, `opcode`, `length_bytes`, flags
  taken = 21,   // the NIC took it off its queue; also `value`: the peer's address, `detail`: the
               // peer's key; of datagrams `peer_qpn`. `code`: verbs::WcStatus that it is doomed to.
               // With flag::kPosted it was posted `count` ns before, which no other record tells
  completion_pushed = 22,  // the CQ has it: `wr_id`, `request` when known, `opcode`:
                           // verbs::WcOpcode, `code`: verbs::WcStatus, `length_bytes`; `count`:
                           // number of the CQ, or 0 where it is not known
  completion_polled = 23,  // the program has it: the same
  completion_lost = 24,    // the CQ was full: the same

  // Packets. `psn`, `opcode`: of the BTH; `length_bytes`: payload; `peer_qpn`: the destination of
  // what is sent, and the source, when known, of what is received; `code`: AETH syndrome or FETH,
  // `count`: AETH MSN, or of a READ request the length that it asks for; `value`, `detail`: address
  // and key of a RETH or AtomicETH; `request` when known: whose packet it is, at the requester.
  packet_sent = 30,  // with flag::kRetransmission: Cause
  packet_lost = 31,  // it left `device`, and this impairment took it: `program` is the number of
                     // its name in Table::impairment; kind of loss: Cause
  packet_received = 32,  // a QP of `device` looks at it
  packet_refused = 33,  // and does not take it: `program` is the number of the rule in Table::rule;
                        // `code`: the AETH syndrome that the rule tells over RC and XRC, or 0;
                        // of a key `detail` is the key, and Cause what is wrong with it
  packet_dropped = 34,  // no QP has looked at it: Cause

  // These tell what becomes of packets. `psn` is the packet's that is spoken of.
  nak_sent = 40,         // `code`: AETH syndrome
  nak_received = 41,     // the same
  rnr_sent = 42,         // the same: the receiver was not ready
  rnr_received = 43,     // the same; `value`: ns to wait
  ack_timeout = 44,      // `count`: which in a row, `detail`: how many are allowed
  retransmission = 45,   // what was sent is to be sent again, from `psn` on: Cause
  implied_nak = 46,      // an answer of a later request tells that this one was lost
  duplicate = 47,        // a request that has been executed already came again
  out_of_sequence = 48,  // a packet ahead of the expected one
  placed_ahead = 49,     // and taken all the same (selective repeat)
  stale_ack = 50,        // an ACK that tells nothing new
  data_placed = 51,      // bytes are where they belong in the program's memory: `length_bytes`;
                         // with flag::kHasReth `value`: where, which is known of WRITEs
  acknowledged = 52,     // all requests up to `request` have been answered; the rest is of that one
  congestion = 53,       // Cause; with cnp_handled `value`: the rate from now on in bit/s
  waits = 54,            // the QP has something to send and may not: Cause. That ends with the next
                         // packet_sent that is no response, or a `waits` without a Cause

  // Connection manager: `opcode`: attribute id of the MAD's low byte; `value`: communication ids,
  // the one of this end in the upper half; `code`: reason of a REJ, status of a SIDR REP or an APR;
  // `qpn`, `peer_qpn`: where the message names them; `psn`: the first one, of a REQ and a REP.
  cm_sent = 60,
  cm_received = 61,

  // A sample: `program` is the number of the counter in Table::counter, `value` what it is; with
  // `qpn` 0 it is the device's. There is none of a counter that has not changed since the last one.
  counter = 70,
};

// Cause says why something happened.
enum class Cause : uint8_t {
  none = 0,

  // retransmission, packet_sent
  ack_timeout = 1,
  early_probe = 2,  // the answer is overdue by the measured round trip
  sequence_nak = 3,
  rnr_nak = 4,
  implied_nak = 5,
  selective = 6,  // selective repeat: the peer named what it lacks
  migration = 7,

  // packet_lost
  dropped = 20,    // at random, or by a rule
  corrupted = 21,  // it goes on, and its ICRC will not fit
  link_down = 22,
  queue_full = 23,
  trimmed = 24,
  no_place = 25,  // nobody has the address, or the port has no room

  // packet_dropped
  malformed = 30,
  bad_icrc = 31,
  no_qp = 32,

  // qp_state, program_ended, stopped
  by_program = 40,
  by_error = 41,
  by_death = 42,
  by_user = 43,
  file_full = 44,
  write_failed = 45,  // of the trace's file
  nic_ended = 46,

  // waits
  window = 60,
  rnr_wait = 61,
  fence = 62,
  rd_atomics = 63,  // max_rd_atomic READs and atomics are outstanding
  // 64 was for credit of receives, which this NIC does not have; no file has it
  pace = 65,
  not_ready = 66,   // the QP is not in RTS
  rate_limit = 67,  // the rate that the program has set
  earlier = 68,     // a local request waits until those before it are over

  // congestion
  ecn_marked = 80,
  cnp_sent = 81,
  cnp_handled = 82,
  cnp_ignored = 83,

  // packet_refused
  key_never_given = 100,
  key_gone = 101,          // its region was deregistered
  key_other_domain = 102,  // its region is in another protection domain
  key_out_of_range = 103,  // its region does not have all of those bytes
  key_not_granted = 104,   // its region, or a window, does not grant such an access
};

namespace flag {
inline constexpr uint16_t kReceiveQueue = 1 << 0;    // posted, taken, completion_*: of a receive
inline constexpr uint16_t kShared = 1 << 1;          // the receive queue is an SRQ
inline constexpr uint16_t kExisted = 1 << 2;         // it is older than the trace
inline constexpr uint16_t kRetransmission = 1 << 3;  // packet_sent, packet_lost
inline constexpr uint16_t kAckRequest = 1 << 4;      // the BTH's
inline constexpr uint16_t kSolicited = 1 << 5;       // the BTH's, or the request's
inline constexpr uint16_t kCongestion = 1 << 6;      // packet: marked with CE
inline constexpr uint16_t kSignaled = 1 << 7;        // the request's
inline constexpr uint16_t kFence = 1 << 8;           // the request's
inline constexpr uint16_t kResponse = 1 << 9;        // packet: sent by the responder
inline constexpr uint16_t kHasAeth = 1 << 10;        // packet: `code` and `count` are of its AETH
inline constexpr uint16_t kHasReth = 1 << 11;        // packet: `value`, `detail` are of its RETH
                                               // (or AtomicETH); data_placed: `value` is known
inline constexpr uint16_t kTimeIsNics = 1 << 12;   // posted, completion_polled: the NIC saw it at
                                                   // that time; it happened at some time before
inline constexpr uint16_t kArriving = 1 << 13;     // packet_lost: it came from elsewhere to `qpn`
inline constexpr uint16_t kPosted = 1 << 14;       // taken: tells of the post as well
inline constexpr uint16_t kKnown = (1 << 15) - 1;  // all of them
}  // namespace flag

inline constexpr uint16_t kNoDevice = 0xffff;
inline constexpr uint16_t kNoProgram = 0xffff;
inline constexpr uint16_t kMaxDevices = 4096;

struct Record {
  uint64_t time_ns = 0;  // of the header's clock
  uint64_t wr_id = 0;
  uint64_t value = 0;
  uint32_t request = 0;  // 0: none, or unknown
  uint32_t qpn = 0;
  uint32_t psn = 0;
  uint32_t peer_qpn = 0;
  uint32_t length_bytes = 0;
  uint32_t count = 0;
  Kind kind = Kind::none;
  Cause cause = Cause::none;
  uint8_t opcode = 0;
  uint8_t code = 0;
  uint16_t flags = 0;
  uint16_t device = kNoDevice;
  uint16_t peer_device = kNoDevice;  // of this NIC; kNoDevice when it is another's
  uint16_t program = kNoProgram;
  uint32_t detail = 0;
};
static_assert(sizeof(Record) == 64 && offsetof(Record, kind) == 48);

// `count` of Kind::qp_state.
struct QpTimers {
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;  // 7: for ever
  uint8_t timeout = 0;    // 4.096 us * 2^timeout; 0: none

  constexpr uint32_t packed() const {
    return retry_count | uint32_t{rnr_retry} << 8 | uint32_t{timeout} << 16;
  }
  static constexpr QpTimers unpacked(uint32_t count) {
    return {static_cast<uint8_t>(count), static_cast<uint8_t>(count >> 8),
            static_cast<uint8_t>(count >> 16)};
  }
};

// Table says what a name stands for.
enum class Table : uint8_t {
  device = 1,      // "rocemu0"; `detail` is its MTU in bytes
  address = 2,     // one of a device's, "10.77.0.1": `number` is the device's
  program = 3,     // "ib_write_bw"; `detail` is its pid
  rule = 4,        // why packets are refused: "receiver_not_ready"
  impairment = 5,  // "loss=1%"
  counter = 6,     // "out_of_buffer"
};

// A record of Kind::name. A text longer than kBytes goes on in the records of its table and number
// that follow, whose parts count up from 0; a shorter one is filled up with zeroes. A text that
// comes again replaces the first one, but for addresses, of which a device may have several.
struct NameRecord {
  static constexpr size_t kBytes = 40;
  static constexpr uint8_t kMaxParts = 16;

  uint64_t time_ns = 0;
  char text[kBytes] = {};
  Kind kind = Kind::name;
  Table table = Table::device;
  uint8_t part = 0;
  uint8_t parts = 1;
  uint16_t number = 0;
  uint16_t reserved[3] = {};
  uint32_t detail = 0;
};
static_assert(sizeof(NameRecord) == sizeof(Record) &&
              offsetof(NameRecord, kind) == offsetof(Record, kind));

enum class Clock : uint32_t {
  monotonic = 1,  // CLOCK_MONOTONIC of the machine
  virtual_time = 2,
};

struct Header {
  static constexpr char kMagic[8] = {'R', 'C', 'M', 'T', 'R', 'A', 'C', 'E'};
  static constexpr uint32_t kByteOrder = 0x01020304;
  static constexpr uint16_t kMajor = 1;
  static constexpr uint16_t kMinor = 1;
  // The records are the last of a ring, of which the older ones were overwritten.
  static constexpr uint32_t kLastEvents = 1;

  char magic[8] = {'R', 'C', 'M', 'T', 'R', 'A', 'C', 'E'};
  uint32_t byte_order = kByteOrder;
  uint16_t major = kMajor;
  uint16_t minor = kMinor;
  uint32_t header_bytes = 128;
  uint32_t record_bytes = sizeof(Record);
  Clock clock = Clock::monotonic;
  uint32_t flags = 0;
  uint64_t start_ns = 0;       // when the trace began, of `clock`
  uint64_t start_unix_ns = 0;  // the same in ns since 1970; 0 in virtual time
  char creator[48] = {};       // "rocemud 0.1.0"
  uint8_t reserved[32] = {};
};
static_assert(sizeof(Header) == 128);

}  // namespace rocemu::trace
