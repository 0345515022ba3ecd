// A send or receive queue, from the side that fills it. Not thread-safe: its queue's lock is held.
//
// Entries are claimed, written in place, and become the NIC's all at once with publish(); until
// then they can be given back. See verbs_shim/abi/rings.h.
#pragma once

#include <cstdint>

#include "verbs_shim/provider/rings/ring_size.h"
#include "verbs_shim/provider/rings/shared_index.h"
#include "verbs_shim/provider/rings/stamps.h"

namespace rocemu::provider {

class WorkRing {
 public:
  // `entries`: how many may be in use at a time, 0 for a queue that takes nothing; there are
  // ring_slots() of them.
  void attach(uint32_t* producer, const uint32_t* consumer, uint8_t* slots, uint32_t entries,
              uint32_t stride_bytes, const uint32_t* stamps_posts = &kNoStamps) {
    stamps_word_ = stamps_posts;
    producer_word_ = producer;
    consumer_word_ = consumer;
    slots_ = slots;
    entries_ = entries;
    mask_ = ring_slots(entries) - 1;
    stride_bytes_ = stride_bytes;
    published_ = claimed_ = load_relaxed(producer);
    consumer_seen_ = load_relaxed(consumer);
  }

  // The next free entry, or null when the ring is full.
  uint8_t* claim() {
    if (claimed_ - consumer_seen_ >= entries_) {
      consumer_seen_ = load_acquire(consumer_word_);
      if (claimed_ - consumer_seen_ >= entries_) return nullptr;
    }
    return slots_ + static_cast<uint64_t>(claimed_++ & mask_) * stride_bytes_;
  }

  void unclaim_last() { --claimed_; }
  void unclaim_all() { claimed_ = published_; }
  bool has_claimed() const { return claimed_ != published_; }
  // True when the NIC is not yet done with an entry before the one claimed last.
  bool last_has_others_before() const { return claimed_ - load_relaxed(consumer_word_) > 1; }

  void publish() {
    published_ = claimed_;
    store_release(producer_word_, published_);
  }

  // Returns what belongs into the next entry as its post_stamp.
  uint32_t post_stamp() const {
    return load_relaxed(stamps_word_) == 0 ? 0 : post_stamp_of(monotonic_ns());
  }

 private:
  static constexpr uint32_t kNoStamps = 0;

  const uint32_t* stamps_word_ = &kNoStamps;
  uint32_t* producer_word_ = nullptr;
  const uint32_t* consumer_word_ = nullptr;
  uint8_t* slots_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t mask_ = 0;
  uint32_t stride_bytes_ = 0;
  uint32_t published_ = 0;
  uint32_t claimed_ = 0;
  uint32_t consumer_seen_ = 0;
};

}  // namespace rocemu::provider
