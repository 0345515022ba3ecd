#include "emulator/inspection/access_log.h"

#include <algorithm>

namespace rocemu::inspection {

namespace {

constexpr uint64_t kWordBytes = 8;

// Both within one aligned word, as far as they have bytes in common.
bool share_a_word_at_most(const Access& a, const Access& b) {
  const uint64_t begin = std::max(a.address, b.address);
  const uint64_t last =
      std::min(a.address + (a.length_bytes - 1), b.address + (b.length_bytes - 1));
  return begin / kWordBytes == last / kWordBytes;
}

// They touch the same bytes in a way whose result depends on which comes first.
bool conflict(const Access& a, const Access& b) {
  if (a.space != b.space) return false;
  if (a.address - b.address >= b.length_bytes && b.address - a.address >= a.length_bytes)
    return false;
  if (a.kind == AccessKind::read || b.kind == AccessKind::read)
    return a.kind != b.kind && !share_a_word_at_most(a, b);
  if (a.kind == AccessKind::atomic && b.kind == AccessKind::atomic) return false;
  const bool same_bytes = a.kind == b.kind && a.address == b.address &&
                          a.length_bytes == b.length_bytes && a.length_bytes <= kWordBytes &&
                          a.content == b.content;
  return !same_bytes;
}

}  // namespace

std::optional<Access> AccessLog::add(const Access& access) {
  if (access.length_bytes == 0) return std::nullopt;
  const Access* found = find_write(access);
  if (found == nullptr && access.kind != AccessKind::read) found = find_read(access);
  const std::optional<Access> other = found == nullptr ? std::nullopt : std::optional(*found);
  if (access.kind == AccessKind::read) {
    if (reads_.empty()) reads_.resize(kReads);
    reads_[++read_count_ % kReads] = access;
    return other;
  }
  if (writes_.empty()) writes_.resize(kWrites);
  const Write& last = writes_[write_count_ % kWrites];
  const bool goes_on = write_count_ > 0 && last.access.requester == access.requester;
  const uint64_t before = goes_on ? last.other : write_count_;
  writes_[++write_count_ % kWrites] = {access, before};
  return other;
}

const Access* AccessLog::find_write(const Access& access) const {
  uint64_t number = write_count_;
  while (number > 0 && number + kWrites > write_count_) {
    const Write& write = writes_[number % kWrites];
    if (write.access.made < access.taken) return nullptr;
    if (write.access.requester == access.requester) {
      number = write.other;
      continue;
    }
    if (conflict(write.access, access)) return &write.access;
    --number;
  }
  return nullptr;
}

const Access* AccessLog::find_read(const Access& access) const {
  const uint64_t oldest = read_count_ > kReads ? read_count_ - kReads : 0;
  for (uint64_t number = read_count_; number > oldest; --number) {
    const Access& read = reads_[number % kReads];
    if (!conflict(read, access)) continue;
    const Step over = over_(read);
    const bool unordered = read.requester == access.requester ? over == 0 && !access.fenced
                                                              : over == 0 || over > access.taken;
    if (unordered) return &read;
  }
  return nullptr;
}

}  // namespace rocemu::inspection
