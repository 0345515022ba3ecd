// TagMatcher is what a QP on a tag-matching SRQ has beside its own queues: it reads what peers
// offer, and tells them when it has. These requests go out between the program's own, and the
// outcome of the READs is told on the SRQ's CQ.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>

#include "emulator/device/objects/tag_list.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/interface/tag_matching.h"

namespace rocemu::device {

class TagMatcher final : public transport::TagMatching,
                         public transport::SendQueue,
                         public transport::CompletionQueue {
 public:
  // `program_queue` and `program_cq` are the QP's own; `cq` and `pd` are the SRQ's. All outlive it.
  TagMatcher(TagList& tags, transport::SendQueue& program_queue,
             transport::CompletionQueue& program_cq, transport::CompletionQueue& cq,
             transport::PdHandle pd)
      : tags_(tags), program_queue_(program_queue), program_cq_(program_cq), cq_(cq), pd_(pd) {}
  ~TagMatcher() override { reset(); }
  TagMatcher(const TagMatcher&) = delete;
  TagMatcher& operator=(const TagMatcher&) = delete;

  // The QP has forgotten its requests.
  void reset();

  // transport::TagMatching
  bool take(uint64_t tag, transport::ReceiveWork& buffer) noexcept override {
    return tags_.take(tag, buffer);
  }
  void note_unexpected() noexcept override { tags_.note_unexpected(); }
  void read(const transport::ReceiveWork& buffer, const transport::RendezvousHeader& offer,
            std::span<const std::byte> headers) noexcept override;

  // transport::SendQueue
  bool pop(transport::SendWork& work) noexcept override;
  void release(uint32_t count) noexcept override;

  // transport::CompletionQueue: that of the send queue
  void push(const transport::Completion& completion) noexcept override;
  bool reaches(const transport::MemoryRange& range) const noexcept override {
    return program_cq_.reaches(range);
  }

 private:
  // A READ, or the message to the peer behind it.
  struct Request {
    transport::SendWork work;
    std::array<std::byte, transport::kRendezvousBytes> message{};
  };

  // The program's own wr_ids are its to choose; that one is of these by accident is as good as
  // impossible.
  static constexpr uint64_t kFirstId = 0x52d3'9ac1'0000'0000u;
  uint64_t next_id() { return kFirstId + ids_++; }
  bool is_own(uint64_t id) const { return id >= kFirstId && id - kFirstId < ids_; }

  TagList& tags_;
  transport::SendQueue& program_queue_;
  transport::CompletionQueue& program_cq_;
  transport::CompletionQueue& cq_;
  transport::PdHandle pd_;
  std::deque<std::unique_ptr<Request>> waiting_;
  std::deque<std::unique_ptr<Request>> sent_;  // popped, in order; null: one of the program's
  std::map<uint64_t, uint64_t> reads_;         // our wr_id of a READ, and the buffer's
  uint32_t ids_ = 0;                           // so many were given out
};

}  // namespace rocemu::device
