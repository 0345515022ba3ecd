// The tagged buffers of a tag-matching SRQ (rdma-core, Documentation/tag_matching.md), in the order
// in which they are matched.
//
// A message that no tag matches is unexpected, and matched by the program. A buffer that the
// program adds without knowing of it may be meant for it: it matches nothing until the program has
// said (SYNC) that it knows of as many unexpected messages as there were. Those before go on
// matching.
//
// A buffer counts against the limit until its data have come.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "emulator/device/interface/specs.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::device {

class TagList {
 public:
  explicit TagList(uint32_t max_tags) : max_tags_(max_tags) {}

  // The new buffer's handle; empty when there are max_tags already.
  std::optional<uint32_t> add(const TagOp& op) {
    if (entries_.size() + under_way_ >= max_tags_) return std::nullopt;
    Entry& entry = entries_.emplace_back();
    entry.handle = ++last_handle_ != 0 ? last_handle_ : ++last_handle_;
    entry.tag = op.tag;
    entry.mask = op.mask;
    entry.buffer.wr_id = op.receive_wr_id;
    entry.buffer.sges.assign(op.sges);
    for (const transport::Sge& sge : op.sges) entry.buffer.length_bytes += sge.length_bytes;
    if (in_step()) active_ = entries_.size();
    return entry.handle;
  }
  // False: a message has taken it, or there never was one.
  bool remove(uint32_t handle) {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].handle == handle) {
        erase(i);
        return true;
      }
    return false;
  }
  // The program knows of so many unexpected messages.
  void synchronize(uint32_t unexpected) {
    known_ = unexpected;
    if (in_step()) active_ = entries_.size();
  }
  bool in_step() const { return known_ == unexpected_; }

  // Takes the first buffer whose tag is `tag`; begin_read() is to follow when its data are to be
  // read.
  bool take(uint64_t tag, transport::ReceiveWork& buffer) {
    for (size_t i = 0; i < active_; ++i) {
      Entry& entry = entries_[i];
      if ((tag & entry.mask) != entry.tag) continue;
      buffer = std::move(entry.buffer);
      erase(i);
      return true;
    }
    return false;
  }
  void note_unexpected() { ++unexpected_; }

  void begin_read() { ++under_way_; }
  void end_read() { --under_way_; }

 private:
  struct Entry {
    uint32_t handle = 0;
    uint64_t tag = 0;
    uint64_t mask = 0;
    transport::ReceiveWork buffer;
  };

  void erase(size_t index) {
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(index));
    if (index < active_) --active_;
  }

  const uint32_t max_tags_;
  std::deque<Entry> entries_;
  size_t active_ = 0;        // so many from the first on may be matched
  uint32_t under_way_ = 0;   // taken, and being read
  uint32_t unexpected_ = 0;  // messages so far …
  uint32_t known_ = 0;       // … of which the program knows of so many
  uint32_t last_handle_ = 0;
};

}  // namespace rocemu::device
