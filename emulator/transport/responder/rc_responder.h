// The responder of a reliable connection: executes requests in PSN order, exactly once, and answers
// them (IBTA vol 1, 9.7.4 and 9.7.5.1).
//
// Only the packet with the expected PSN is executed. One ahead of it draws one NAK for a sequence
// error, the rest is dropped until the expected one comes. When what drew the NAK comes again
// before that, the requester has gone back and the expected packet was lost again: another NAK, or
// its ACK timer would have to run out. One behind the expected packet is a duplicate: SEND and
// WRITE are acknowledged again, a READ is read again, an atomic is answered from the stored result.
//
// Answers leave in PSN order through a bounded queue (`responses_`). Acknowledgements coalesce: a
// burst of requests is answered by one ACK with the newest PSN. READ data is fetched when its
// packet is sent. At most max_dest_rd_atomic READs and atomics wait; one more is an invalid
// request.
//
// Over XRC each request names an SRQ of the QP's domain, whose protection domain, receives and CQ
// it uses (annex A14); it may be gone at the next packet.
//
// A request that may not be executed ends the connection: NAK, event, ERROR. The NAK still leaves.
#pragma once

#include <optional>

#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class RcResponder {
 public:
  explicit RcResponder(QpContext& context) : context_(context) {}

  void reset();
  void start();  // to RTR: the first PSN expected is attributes.receive_psn

  void on_request(const wire::Packet& packet);
  Turn transmit(Burst& burst);
  void acknowledge(Burst& burst);

  void add_load(QpLoad& load) const {
    load.queued_responses = static_cast<uint32_t>(responses_.size());
    load.kept_atomic_results = static_cast<uint32_t>(atomic_results_.size());
  }

  void flush();         // the receive under way
  void flush_posted();  // what still stands in the queue
  void on_fetch_failed(wire::Psn psn);
  void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced);

 private:
  enum class Message : uint8_t { none, send, write };

  struct Response {
    enum class Kind : uint8_t { acknowledge, read, atomic };
    Kind kind = Kind::acknowledge;
    uint8_t syndrome = 0;
    wire::Psn psn;
    uint32_t msn = 0;
    uint64_t value = 0;  // READ: the address; atomic: the original value
    wire::RKey rkey{};
    PdHandle pd = 0;  // READ: the one that the key was checked in
    uint32_t length_bytes = 0;
    uint32_t packets = 1;
    uint32_t sent = 0;    // packets of it
    bool replay = false;  // sent once before
    bool is_ack() const { return kind == Kind::acknowledge && syndrome == wire::syndrome::kAck; }
  };
  struct AtomicResult {
    wire::Psn psn;
    uint64_t original = 0;
  };

  // rc_responder.cc
  void on_duplicate(const wire::Packet& packet);
  bool well_formed(const wire::Packet& packet) const;
  void execute(const wire::Packet& packet);
  void execute_send(const wire::Packet& packet);
  void execute_write(const wire::Packet& packet);
  void execute_read(const wire::Packet& packet);
  void execute_atomic(const wire::Packet& packet);
  void execute_atomic_write(const wire::Packet& packet);
  bool find_target(const wire::Packet& packet, SharedReceiver& target) const;
  bool choose_target(const wire::Packet& packet);
  CompletionQueue* receive_cq() const;
  bool take_receive();
  std::optional<ResponderFault> scatter_receive(std::span<const std::byte> payload, wire::Psn psn);
  bool put_in_cqe(std::span<const std::byte> payload);
  void complete_receive(WcStatus status, const wire::Packet* packet, uint32_t byte_length);
  void accept(const wire::Packet& packet, uint32_t psns, bool message_ends);
  void fail(const ResponderFault& fault, wire::Psn psn);
  bool room_for_rd_atomic() const;

  // rc_responses.cc
  void queue_acknowledge(uint8_t syndrome, wire::Psn psn);
  void queue_read(wire::Psn psn, const wire::Reth& reth, PdHandle pd, bool replay);
  void queue_atomic(wire::Psn psn, uint64_t original, bool replay);
  void send_before_later_ones();
  template <class Unwanted>
  void drop_responses_if(Unwanted unwanted);
  void drop_responses_from(wire::Psn psn);
  bool shows_restart(wire::Psn psn);
  void renew_nak();
  bool make_room_for_replay(wire::Psn psn);
  bool make_room_for_request();
  Turn send_acknowledge(Burst& burst, const Response& response);
  Turn send_atomic(Burst& burst, const Response& response);
  Turn send_read(Burst& burst, Response& response);
  wire::Bth make_bth(wire::Operation operation, wire::Psn psn) const;

  QpContext& context_;
  wire::Psn expected_psn_;
  uint32_t msn_ = 0;                // messages completed, 24 bits
  bool nak_sent_ = false;           // for the expected PSN
  bool nak_withdrawn_ = false;      // before it left, by the packet at hand
  std::optional<wire::Psn> ahead_;  // what drew the NAK, or came first after an RNR NAK
  bool established_ = false;

  Message message_ = Message::none;  // what is under way
  bool receive_taken_ = false;
  ReceiveWork receive_;
  uint32_t received_bytes_ = 0;
  InlineCqeData inline_data_;  // by the completion of the receive under way
  wire::Qpn srq_{};            // XRC: the SRQ that the message under way is for
  wire::Reth write_;           // where the WRITE under way goes on, and how much is left
  uint32_t written_bytes_ = 0;

  RingBuffer<Response> responses_;
  uint32_t rd_atomics_queued_ = 0;
  RingBuffer<AtomicResult> atomic_results_;
};

}  // namespace rocemu::transport
