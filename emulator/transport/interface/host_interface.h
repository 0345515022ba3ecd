// The interfaces by which the transport gets what it needs from outside: queues, memory, frames,
// events. The NIC (device, daemon), the simulator and the fuzzers each bring their own. None of the
// calls may block, and none may call back into the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/net/path_telemetry.h"
#include "emulator/transport/interface/work.h"
#include "emulator/wire/run.h"

namespace rocemu::transport {

class SendQueue {
 public:
  virtual ~SendQueue() = default;
  // Copies the next posted request to `work`; false when there is none.
  virtual bool pop(SendWork& work) noexcept = 0;
  // The oldest `count` popped requests are over: their slots may be posted to again.
  virtual void release(uint32_t count) noexcept = 0;
  // How many are posted and not popped, which says what stands behind an error as well; and, for
  // those who look at the NIC, how many have been released, modulo 2^32.
  virtual uint32_t waiting() const noexcept { return 0; }
  virtual uint32_t released() const noexcept { return 0; }
};

class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;
  // Takes the next posted receive; false when there is none.
  virtual bool pop(ReceiveWork& work) noexcept = 0;
  // The number of receives that are posted and not taken.
  virtual uint32_t waiting() const noexcept { return 0; }
};

// A range of some program's memory that has passed the protection check.
struct MemoryRange {
  void* space = nullptr;  // the program's memory, in a form of the Memory's own
  uint64_t address = 0;
  bool on_demand = false;       // its pages may be missing
  std::byte* mapped = nullptr;  // where this process has it as well, if it does
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  virtual void push(const Completion& completion) noexcept = 0;
  // True when whoever takes the completions can write to `range`: the payload may then be inline.
  virtual bool reaches(const MemoryRange& range) const noexcept = 0;
};

// The SRQ that a request over XRC uses at its responder (IBTA vol 1, annex A14).
struct SharedReceiver {
  PdHandle pd = 0;
  ReceiveQueue* queue = nullptr;
  CompletionQueue* cq = nullptr;
};

class XrcDomain {
 public:
  virtual ~XrcDomain() = default;
  // False when the domain has no SRQ of that number.
  virtual bool find(wire::Qpn srq, SharedReceiver& receiver) const noexcept = 0;
};

struct Path;

// The address handles that unreliable datagrams are sent by, and the port's own addresses.
class Addresses {
 public:
  virtual ~Addresses() = default;
  // The way that an address handle stands for; null when there is none of that number in `pd`.
  virtual const Path* find(PdHandle pd, uint32_t address_handle) const noexcept = 0;
  // True when the port has this address.
  virtual bool is_local(const wire::Gid& gid) const noexcept = 0;
};

// Events about a QP that do not belong to a work request.
enum class QpEvent : uint8_t {
  fatal = verbs::async_event::kQpFatal,
  request_error = verbs::async_event::kQpRequestError,
  access_error = verbs::async_event::kQpAccessError,
  communication_established = verbs::async_event::kCommunicationEstablished,
  send_queue_drained = verbs::async_event::kSendQueueDrained,
  // The attributes `path` and `timeout` are now those of the alternate path.
  path_migrated = verbs::async_event::kPathMigrated,
  path_migration_error = verbs::async_event::kPathMigrationError,
  last_wqe_reached = verbs::async_event::kQpLastWqeReached,
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_qp_event(wire::Qpn qpn, QpEvent event) noexcept = 0;
  // The QP went to ERROR of itself, not by a modify.
  virtual void on_qp_error(wire::Qpn qpn) noexcept = 0;
};

using namespace verbs::access;

// Protection and data movement. Fetches and scatters are collected and moved by the flush calls;
// the transport looks at fetched bytes, sends frames, acknowledges and completes only after the
// flush.
class Memory {
 public:
  virtual ~Memory() = default;

  // True and fills `range` when the key grants `access` to all `length_bytes` from `address` within
  // protection domain `pd`. Precondition: length_bytes > 0.
  virtual bool check_local(PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                           uint32_t access, MemoryRange& range) noexcept = 0;
  // `qpn` is the QP here that the peer reached: a window of type 2 grants nothing to others.
  virtual bool check_remote(PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                            uint32_t length_bytes, uint32_t access,
                            MemoryRange& range) noexcept = 0;
  // The same of whatever the key is of, as a whole: its address and length say nothing then, but to
  // who tells of it.
  virtual bool grants_remote(PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                             uint32_t access) noexcept = 0;

  // Memory windows, for a QP of `pd` (IBTA vol 1, 10.6.7 and 10.6.5). False: refused, and nothing
  // has changed. What has passed a check before may still be moved afterwards.
  virtual bool bind_window(PdHandle pd, wire::Qpn qpn, const WindowBinding& binding) noexcept = 0;
  virtual bool invalidate(PdHandle pd, wire::Qpn qpn, wire::RKey rkey) noexcept = 0;

  // fetch() moves bytes from a program to `into`, scatter() from `from` to a program. `tag` comes
  // back when the move failed.
  virtual void fetch(const MemoryRange& range, std::byte* into, uint32_t length_bytes,
                     uint32_t tag) noexcept = 0;
  virtual void scatter(const MemoryRange& range, const std::byte* from, uint32_t length_bytes,
                       uint32_t tag) noexcept = 0;
  // True when the bytes of `range` may be read at `range.mapped` from now on, until the program has
  // them back: by an error of the request they are of (Endpoint::take_given_back), or by what is no
  // matter of the data path. A run may leave them there till then (FrameBuffer::lent). Each page
  // has been read once, so that what is missing already is found by its owner, in a fetch.
  virtual bool can_lend(const MemoryRange&, uint32_t /*length_bytes*/) noexcept { return false; }
  // Until end_lent(), scatters are from these bytes, which are another program's memory; `room` has
  // room for them until the scatters are flushed. False: some have gone, and nothing has begun.
  virtual bool begin_lent(std::span<const std::byte>, std::byte* /*room*/) noexcept {
    return false;
  }
  virtual void end_lent() noexcept {}
  // True when the bytes of `range`, to which the data of a READ comes, may be written at
  // `range.mapped` by whoever answers it, for as long as a Landing there holds.
  virtual bool can_land(const MemoryRange&) noexcept { return false; }
  // Copies the bytes of `range` to a Landing at once, words of 8 bytes whole. False: that is not to
  // be, or some of either have gone; a part may have been copied.
  virtual bool land(const MemoryRange&, std::byte* /*to*/, uint32_t /*length_bytes*/) noexcept {
    return false;
  }
  // What is fetched or landed from now on is read after all that was to be fetched before.
  virtual void settle_fetches() noexcept {}
  // Copies what another port's memory has lent. False: some have gone.
  virtual bool take_lent(std::span<const std::byte> /*lent*/, std::byte* /*into*/) noexcept {
    return false;
  }
  // Move all that was collected; tags of failed moves are appended in the order of their calls.
  virtual void flush_fetches(std::vector<uint32_t>& failed) noexcept = 0;
  virtual void flush_scatters(std::vector<uint32_t>& failed) noexcept = 0;

  // Atomic on 8 aligned bytes, after all scatters so far. False when the memory is out of reach.
  virtual bool compare_swap(const MemoryRange& range, uint64_t compare, uint64_t swap,
                            uint64_t& original) noexcept = 0;
  virtual bool fetch_add(const MemoryRange& range, uint64_t add, uint64_t& original) noexcept = 0;
};

// Icrc says whether a frame bears its ICRC, or owes it: then it has not been computed, and whoever
// shows the frame to anybody but an endpoint computes it first (wire::store_datagram_icrc).
enum class Icrc : uint8_t { there, owed };

// The payload of a run that is not in its frame but still in the memory it is sent from. It may go
// at any moment, so that it is moved by Memory alone, and never looked at.
struct LentPayload {
  const std::byte* bytes = nullptr;  // null: the payload is in the frame
  uint32_t length_bytes = 0;
  uint32_t offset_bytes = 0;  // where it belongs in the frame
};

// Where the data of a READ belongs, which goes with its request to a responder that reaches both
// memories: it copies the data there once, and its answers lend them from there. It holds while
// FrameSink::landing_epoch() is still the same, and for a QP that is connected to the requester.
struct Landing {
  std::byte* at = nullptr;  // null: there is none
  uint64_t epoch = 0;
  wire::Qpn requester{};
};

// What a received frame is when it is a run (wire/run.h), and what comes with it.
struct ReceivedRun {
  uint32_t segment_bytes = 0;       // the payload of each packet but the last; 0: it is none
  const std::byte* lent = nullptr;  // where its payload is, if not in the frame
  std::byte* room = nullptr;        // where that belongs in the frame
  Landing landing{};                // of a READ request
};

// A buffer for one outgoing frame, from the Ethernet header on.
struct FrameBuffer {
  std::byte* data = nullptr;
  void* handle = nullptr;  // the FrameSink's own
  // The IP header of a sent frame that owes its ICRC begins here; 0: it owes none.
  uint16_t icrc_owed_from = 0;
  wire::RunShape run{};  // of a frame that is sent
  LentPayload lent{};    // of a run that is sent
  Landing landing{};     // of a READ request that is sent
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // False when no buffer is free; the transport tries again at its next transmit call.
  // A buffer holds at least kMaxFrameBytes.
  virtual bool allocate(FrameBuffer& buffer) noexcept = 0;
  virtual void send(const FrameBuffer& buffer, uint32_t length_bytes) noexcept = 0;
  virtual void discard(const FrameBuffer& buffer) noexcept = 0;
  // Asked once for each burst: whether its frames may owe their ICRC.
  virtual bool may_owe_icrc() const noexcept { return false; }
  // The same: whether it may have runs (wire/run.h), for which allocate_run() has buffers of at
  // least kMaxRunFrameBytes. Where none is free the packets may still leave one by one.
  virtual bool takes_runs() const noexcept { return false; }
  virtual bool allocate_run(FrameBuffer&) noexcept { return false; }
  // The same: whether runs may leave their payload where it is. Whoever has such a run copies it
  // (Memory::take_lent) before anything but the data path is let at regions.
  virtual bool takes_lent() const noexcept { return false; }
  // Where payload may be lent, landings are given out as well. Those of this epoch hold: it ends
  // when lent payload is copied, since memory may be its program's again from then on. 0: there are
  // none.
  virtual uint64_t landing_epoch() const noexcept { return 0; }
};

// The longest frame, from the Ethernet header to the ICRC, and with path telemetry behind the ICRC.
inline constexpr uint32_t kMaxPlainFrameBytes = 14 + 4 + 40 + 8 + 12 + 28 + 4096 + 4 + 4;
// The most payload of one request for TCP segmentation, and of its headers. Ethernet with two tags,
// IPv4 and TCP with all options are 142, but programs ask for room for more.
inline constexpr uint32_t kMaxTsoBytes = 256 * 1024;
inline constexpr uint32_t kMaxTsoHeaderBytes = 1024;
inline constexpr uint32_t kMaxFrameBytes = kMaxPlainFrameBytes + kMaxTelemetryBytes;
inline constexpr uint32_t kMaxRunFrameBytes =
    kMaxPlainFrameBytes - wire::kMaxMtuBytes + wire::kMaxRunBytes;

}  // namespace rocemu::transport
