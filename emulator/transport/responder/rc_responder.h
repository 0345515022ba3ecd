// The responder of a reliable connection: executes requests in PSN order, exactly once, and answers
// them (IBTA vol 1, 9.7.4 and 9.7.5.1).
//
// Only the packet with the expected PSN is executed. One ahead of it draws a NAK for a sequence
// error, as nak_state.h says. One behind it is a duplicate: SEND and WRITE are acknowledged again,
// a READ is read again, an atomic is answered from the stored result (atomic_results.h).
//
// A request that may not be executed is refused by a row of refusals.h, which names the NAK, the
// event and the receive's status. Most refusals end the connection; the NAK still leaves.
//
// Over XRC each request names an SRQ of the QP's domain, whose protection domain, receives and CQ
// it uses (annex A14); it may be gone at the next packet.
//
// With selective repeat packets ahead are taken as well: out_of_order.h.
//
// Answers leave through response_queue.h.
#pragma once

#include <memory>
#include <span>

#include "emulator/transport/interface/wait.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/responder/atomic_results.h"
#include "emulator/transport/responder/nak_state.h"
#include "emulator/transport/responder/out_of_order.h"
#include "emulator/transport/responder/refusals.h"
#include "emulator/transport/responder/response_queue.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class RcResponder {
 public:
  explicit RcResponder(QpContext& context) : context_(context), responses_(context) {}

  void reset();
  void start();  // to RTR: the first PSN expected is attributes.receive_psn

  void on_request(const wire::Packet& packet);
  // Says whether a run of requests can be handed over as a whole.
  bool takes_whole(const wire::Packet& run) const {
    return run.bth.psn == expected_psn_ && context_.resources.tags == nullptr;
  }
  Turn transmit(Burst& burst) { return responses_.empty() ? Turn::idle : answer(burst); }
  void acknowledge(Burst& burst) { responses_.acknowledge(burst); }

  void add_load(QpLoad& load) const {
    load.queued_responses = static_cast<uint32_t>(responses_.size());
    load.kept_atomic_results = static_cast<uint32_t>(atomic_results_.size());
  }

  void add_facts(WaitFacts& facts) const {
    facts.answered_messages = responses_.completed_messages();
    facts.queued_responses = static_cast<uint32_t>(responses_.size());
    facts.told_not_ready = nak_.not_ready();
  }

  // Completes the receive under way with a flush error.
  void flush();
  // Completes the receives that still stand in the queue with a flush error.
  void flush_posted();
  void on_fetch_failed(wire::Psn psn);
  void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced);

 private:
  void tell_taken(const ReceiveWork& work) const;
  // The receive that the message under way consumes.
  struct CurrentReceive {
    bool taken = false;
    ReceiveWork work;
    uint32_t received_bytes = 0;
    InlineCqeData inline_data;
  };
  // The message under way to a QP on a tag-matching SRQ.
  struct TaggedMessage {
    bool matched = false;  // the receive is the buffer that its tag has matched
    WcOpcode opcode = WcOpcode::tm_receive;
    TagHeader header;
  };
  // The WRITE under way.
  struct CurrentWrite {
    wire::Reth rest;  // where it goes on, and how much is left
    uint32_t written_bytes = 0;
  };

  Turn answer(Burst& burst);
  void on_duplicate(const wire::Packet& packet);
  void read_again(const wire::Packet& packet);

  Refusal execute(const wire::Packet& packet);
  Refusal execute_send(const wire::Packet& packet, const SharedReceiver& target);
  Refusal execute_write(const wire::Packet& packet, const SharedReceiver& target);
  Refusal execute_read(const wire::Packet& packet, const SharedReceiver& target);
  Refusal execute_atomic(const wire::Packet& packet, const SharedReceiver& target);
  Refusal execute_atomic_write(const wire::Packet& packet, const SharedReceiver& target);
  Refusal execute_flush(const wire::Packet& packet, const SharedReceiver& target);
  void accept(const wire::Packet& packet, uint32_t psns, bool message_ends);
  void note_executed_request(wire::MessageKind kind, wire::Psn psn);

  bool find_target(const wire::Packet& packet, SharedReceiver& target) const;
  Refusal choose_target(const wire::Packet& packet, SharedReceiver& target);
  PdHandle receive_pd(const SharedReceiver& target) const;
  bool check_remote(const SharedReceiver& target, const wire::Reth& reth, uint32_t length_bytes,
                    uint32_t access, MemoryRange& range) const;
  void write(const MemoryRange& range, std::span<const std::byte> payload, wire::Psn psn);

  Refusal take_receive(const SharedReceiver& target);
  Refusal fill_receive(const wire::Packet& packet, const SharedReceiver& target);
  bool put_in_cqe(std::span<const std::byte> payload, const SharedReceiver& target);
  // Null when, over XRC, the CQ is gone.
  Completion* complete_receive(WcStatus status, const wire::Packet* packet, uint32_t byte_length);
  CompletionQueue* receive_cq() const;

  // tagged_receive.cc
  Refusal execute_tagged_send(const wire::Packet& packet, const SharedReceiver& target);
  Refusal begin_tagged(const wire::Packet& packet, const SharedReceiver& target);
  void take_buffer(const TagHeader& header);
  Refusal take_offer(const wire::Packet& packet, const SharedReceiver& target,
                     const RendezvousHeader& offer);
  Refusal fill_tagged(const wire::Packet& packet, const SharedReceiver& target);
  void announce_match();
  void complete_tagged(WcStatus status, const wire::Packet& packet, uint8_t flags);

  // out_of_order.cc
  bool take_ahead(const wire::Packet& packet);
  bool place_ahead(const wire::Packet& packet);
  bool write_ahead(const wire::Packet& packet, MemoryRange& range);
  void write_around(const MemoryRange& range, std::span<const std::byte> payload, wire::Psn psn,
                    ScatterKind kind);
  bool fill_ahead(const wire::Packet& packet);
  const ReceiveWork* claim_receive(uint32_t messages, const SharedReceiver& target);
  bool take_claimed_receive();
  bool is_in_its_place(const wire::Packet& packet) const;
  void execute_arrived();
  void note_executed(const wire::Packet& packet, wire::Psn first, uint32_t psns);
  void flush_ahead();

  void refuse(Refusal refusal, wire::Psn psn);
  void fail(const RefusalRule& rule, wire::Psn psn);
  void queue_acknowledge(uint8_t syndrome, wire::Psn psn);

  QpContext& context_;
  wire::Psn expected_psn_;
  NakState nak_;
  bool established_ = false;
  wire::MessageKind message_ = wire::MessageKind::none;  // under way: a send, a write or none
  CurrentReceive receive_;
  TaggedMessage tagged_;
  CurrentWrite write_;
  wire::Qpn srq_{};  // XRC: the SRQ that the message under way is for
  ResponseQueue responses_;
  AtomicResults atomic_results_;
  std::unique_ptr<OutOfOrder> ahead_;  // null: go-back-N alone
};

}  // namespace rocemu::transport
