// The answers of a reliable connection's responder on their way out: ACKs and NAKs, READ responses,
// atomic ACKs (IBTA vol 1, 9.7.5.1).
//
// They leave in PSN order. Acknowledgements coalesce: a burst of requests is answered by one ACK
// with the newest PSN. READ data is fetched when its packet is sent. READs and atomics bound the
// queue: at most max_dest_rd_atomic of them wait, and ACKs that become neighbours are merged.
//
// An answer to a repeated request is a replay. It passes the answers that go on with a later PSN,
// and gives way to new requests. With go-back-N no part of a READ has two answers under way: when
// its requester asks again, either the answer still to come stays the only one, or that is dropped
// for the replay. So what the first answer puts at a Landing is written before the READ can be
// over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/transport/responder/arrivals_ahead.h"
#include "emulator/wire/headers.h"

namespace rocemu::transport {

class ResponseQueue {
 public:
  explicit ResponseQueue(QpContext& context) : context_(context) {}

  // NAKs for sequence errors say what is in `ahead`; null: nothing. Both outlive the queue's use.
  void tell_ahead(const ArrivalsAhead* ahead, const wire::Psn* expected) {
    ahead_ = ahead;
    expected_ = expected;
  }
  // Notes what the peer's requests say of selective repeat: that the peer has it, and takes READ
  // responses in any order.
  void note_peer(bool is_selective, bool any_order) {
    peer_is_selective_ = is_selective;
    any_order_ = any_order;
  }

  void reset();
  void clear();
  bool empty() const { return responses_.empty(); }
  size_t size() const { return responses_.size(); }

  // One more message has been completed: answers carry the count from now on (9.7.7.1, MSN).
  void count_message() { msn_ = (msn_ + 1) & wire::Psn::kMask; }
  uint32_t completed_messages() const { return msn_; }

  // `nak_outstanding`: an ACK behind a NAK that has not left says nothing new.
  void add_acknowledge(uint8_t syndrome, wire::Psn psn, bool nak_outstanding);
  // `pd` is the protection domain that the key was checked in. `landing` is of a request that came
  // for the first time.
  void add_read(wire::Psn psn, const wire::Reth& reth, PdHandle pd, const Landing& landing = {});
  void add_read_again(wire::Psn psn, const wire::Reth& reth, PdHandle pd);
  void add_atomic(wire::Psn psn, uint64_t original, bool replay);

  // Takes back a NAK for `psn` that has not left. False: there is none.
  bool take_back_nak(wire::Psn psn);
  // Takes back what was to be sent for `psn` and later ones.
  void drop_from(wire::Psn psn);
  // True while the NAK that ended the connection has not left.
  bool final_nak_waits();

  // Says whether the answer to `psn`, of so many packets, is to be sent again, and makes room for
  // it.
  bool make_room_for_replay(wire::Psn psn, uint32_t packets = 1);
  // Says whether one more READ or atomic may wait, and makes room for it.
  bool make_room_for_request();

  // Adds the next answer to the burst. `unreadable` is set, and nothing added, when the memory of a
  // READ has gone since its request was checked.
  Turn transmit(Burst& burst, std::optional<wire::Psn>& unreadable);
  // Adds the ACKs and NAKs that are next to be sent.
  void acknowledge(Burst& burst);

 private:
  // With selective repeat so many more READ responses may wait, those that fill gaps.
  static constexpr uint32_t kGapsAtOnce = 8;

  struct Response {
    enum class Kind : uint8_t { acknowledge, read, atomic };
    Kind kind = Kind::acknowledge;
    uint8_t syndrome = 0;
    wire::Psn psn;
    uint32_t msn = 0;
    uint64_t value = 0;  // READ: the address; atomic: the original value
    Landing landing;
    wire::RKey rkey{};
    PdHandle pd = 0;
    uint32_t length_bytes = 0;
    uint32_t packets = 1;
    uint32_t sent = 0;    // packets of it
    bool replay = false;  // sent once before
    bool is_ack() const { return kind == Kind::acknowledge && syndrome == wire::syndrome::kAck; }
  };

  Response& add(Response::Kind kind, uint8_t syndrome, wire::Psn psn);
  void add_read_response(wire::Psn psn, const wire::Reth& reth, PdHandle pd);
  void add_rd_atomic(bool replay);
  void pop_front();
  bool has_room() const;
  template <class Unwanted>
  void drop_if(Unwanted unwanted);
  Turn send_selective_nak(Burst& burst, const Response& response);
  Turn send_answer(Burst& burst, const Response& response);
  uint32_t run_packets(const Burst& burst, const Response& response) const;
  Turn send_read(Burst& burst, Response& response, std::optional<wire::Psn>& unreadable);
  Turn send_responses(Burst& burst, Response& response, uint32_t packets,
                      std::optional<wire::Psn>& unreadable);
  wire::Bth make_bth(wire::Operation operation, wire::Psn psn, uint8_t marks) const;
  static Landing landing_at(const Response& response, uint32_t offset);
  static wire::ExtendedHeaders headers_of(const Response& response);
  std::byte* add_frame(Burst& burst, wire::Operation operation, wire::Psn psn,
                       const Response& response, uint32_t payload_bytes,
                       uint32_t telemetry_bytes = 0, uint8_t marks = 0);

  QpContext& context_;
  RingBuffer<Response> responses_;
  uint32_t rd_atomics_ = 0;  // READ responses and atomic ACKs among them
  uint32_t msn_ = 0;         // 24 bits
  const ArrivalsAhead* ahead_ = nullptr;
  const wire::Psn* expected_ = nullptr;
  bool peer_is_selective_ = false;
  bool any_order_ = false;
};

}  // namespace rocemu::transport
