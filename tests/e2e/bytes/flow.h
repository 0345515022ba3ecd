// One direction of verify_bytes: messages from a requester QP to a responder QP, several in flight,
// with what each completion and each byte must be. The caller polls the CQs and hands completions
// in.
//
// Work request ids are (number << 2 | direction << 1 | receive) xor a random tag, so that all 64
// bits are seen to come back; flow_completion() undoes that.
//
// What a message is depends on the seed alone; how messages are chained, and when they are posted,
// also depends on when completions come.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/e2e/bytes/message.h"

namespace rocemu::e2e {

// An arena registered several times over: with every right, with addresses moved elsewhere, and
// with no more rights than a source needs.
class Regions {
 public:
  Regions(const Device& device, const Arena& arena, Random& random);

  struct Region {
    MrPtr mr;
    uint64_t address = 0;  // of the arena's first byte, as work requests name it
    unsigned access = 0;
  };
  // One of those that have at least these rights.
  const Region& pick(Random& random, unsigned access) const;

 private:
  std::vector<Region> regions_;
};

struct FlowEnd {
  ibv_qp* qp = nullptr;
  Arena* arena = nullptr;
  const Regions* regions = nullptr;
  uint32_t max_sge =
      1;  // of the send queue at the requester, of the receive queue at the responder
  uint32_t max_read_sge = 1;
};

struct FlowOptions {
  uint64_t tag = 0;
  unsigned direction = 0;  // 0 or 1
  uint64_t first_number = 0;
  uint64_t seed = 0;
  std::vector<uint32_t> sizes;  // of each message, in bytes
  uint32_t window = 1;          // messages in flight
  uint32_t max_inline_bytes = 0;
  bool all_signalled = false;  // the QP was made with sq_sig_all
  std::vector<const Operation*> operations;
};

struct FlowCompletion {
  uint64_t number;
  unsigned direction;
  bool is_receive;
};
FlowCompletion flow_completion(uint64_t wr_id, uint64_t tag);

class Flow {
 public:
  Flow(const FlowEnd& requester, const FlowEnd& responder, FlowOptions options, Random& timing);

  // Bytes an arena must have for messages of that size.
  static size_t arena_bytes(uint32_t max_message_bytes, uint32_t max_sge);

  bool done() const { return posted_ == options_.sizes.size() && in_flight_.empty(); }
  size_t in_flight() const { return in_flight_.size(); }
  const Message& oldest() const { return in_flight_.front(); }
  uint64_t verified_bytes() const { return verified_bytes_; }

  // Posts a chain of one to a few messages if there is room; says whether it did.
  bool post();
  void on_send_completion(const ibv_wc& wc);
  void on_receive_completion(const ibv_wc& wc);

 private:
  bool plan_one();
  Message draw_message(Random& random) const;
  std::vector<uint32_t> draw_remote_sizes(const Message& message, Random& random) const;
  void lay_out(Message& message, Random& random);
  ibv_send_wr send_wr(const Message& message, std::vector<ibv_sge>& list) const;
  bool last_must_signal() const;
  uint64_t wr_id(const Message& message, bool is_receive) const;
  void post_receives(size_t first);
  void post_sends(size_t first);
  void verify_target(Message& message);
  void retire();

  FlowEnd requester_;
  FlowEnd responder_;
  FlowOptions options_;
  Random& timing_;
  std::deque<Message> in_flight_;  // in the order of posting
  uint64_t posted_ = 0;
  uint64_t verified_bytes_ = 0;
};

}  // namespace rocemu::e2e
