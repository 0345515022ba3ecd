#include "emulator/shake/memory/scribble.h"

#include <algorithm>
#include <utility>

#include "emulator/shake/memory/range_behind.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::shake {
namespace {

constexpr uint32_t kScribblesPpm = 800'000;
constexpr uint32_t kGarbageTag = UINT32_MAX;  // no move of the transport has it
constexpr uint32_t kMaxGarbageBytes = 1 << 16;
constexpr size_t kMaxSources = 1 << 16;
constexpr unsigned kPageBits = 12;

uint64_t first_page(const transport::MemoryRange& range) { return range.address >> kPageBits; }
uint64_t last_page(const transport::MemoryRange& range, uint32_t length_bytes) {
  return (range.address + length_bytes - 1) >> kPageBits;
}
uint64_t page_key(const transport::MemoryRange& range, uint64_t page) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  return reinterpret_cast<uintptr_t>(range.space) * kOdd ^ page;
}

}  // namespace

// The check of a READ's buffer is followed by another call of the same burst, that of a receive by
// the move. A short message is checked and then left to the program's own side (InlineCqeData),
// which may have it in place by the next call: there is no telling that from a READ.
bool Scribble::check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address,
                           uint32_t length_bytes, uint32_t access,
                           transport::MemoryRange& range) noexcept {
  scribble_on_target();
  const bool granted =
      transport::PassingMemory::check_local(pd, lkey, address, length_bytes, access, range);
  if (granted && (access & transport::kLocalWrite) != 0 &&
      length_bytes > transport::InlineCqeData::kMaxBytes)
    target_ = Target{range, std::min(length_bytes, kMaxGarbageBytes)};
  return granted;
}

bool Scribble::check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey,
                            uint64_t address, uint32_t length_bytes, uint32_t access,
                            transport::MemoryRange& range) noexcept {
  scribble_on_target();
  return transport::PassingMemory::check_remote(pd, qpn, rkey, address, length_bytes, access,
                                                range);
}

void Scribble::fetch(const transport::MemoryRange& range, std::byte* into, uint32_t length_bytes,
                     uint32_t tag) noexcept {
  scribble_on_target();
  for (uint64_t page = first_page(range); page <= last_page(range, length_bytes); ++page)
    if (sources_.size() < kMaxSources) sources_.insert(page_key(range, page));
  transport::PassingMemory::fetch(range, into, length_bytes, tag);
}

void Scribble::scatter(const transport::MemoryRange& range, const std::byte* from,
                       uint32_t length_bytes, uint32_t tag) noexcept {
  const std::optional<Target> checked = std::exchange(target_, std::nullopt);
  if (checked && dice_.roll(kScribblesPpm)) add_garbage({range, length_bytes});
  transport::PassingMemory::scatter(range, from, length_bytes, tag);
}

void Scribble::flush_fetches(std::vector<uint32_t>& failed) noexcept {
  scribble_on_target();
  transport::PassingMemory::flush_fetches(failed);
}

void Scribble::flush_scatters(std::vector<uint32_t>& failed) noexcept {
  scribble_on_target();
  failed.insert(failed.end(), failed_early_.begin(), failed_early_.end());
  failed_early_.clear();
  flush_inner(failed);
}

// The target of a READ that leaves now.
void Scribble::scribble_on_target() noexcept {
  const std::optional<Target> target = std::exchange(target_, std::nullopt);
  if (!target || was_sent_from(*target) || !dice_.roll(kScribblesPpm)) return;
  add_garbage(*target);
  flush_inner(failed_early_);
}

void Scribble::add_garbage(const Target& target) {
  const auto piece = static_cast<uint32_t>(garbage_.size());
  for (uint32_t done = 0; done < target.length_bytes; done += piece)
    transport::PassingMemory::scatter(behind(target.range, done), garbage_.data(),
                                      std::min(piece, target.length_bytes - done), kGarbageTag);
}

// Garbage that cannot be written is nobody's failure.
void Scribble::flush_inner(std::vector<uint32_t>& failed) noexcept {
  const size_t before = failed.size();
  transport::PassingMemory::flush_scatters(failed);
  failed.erase(
      std::remove(failed.begin() + static_cast<ptrdiff_t>(before), failed.end(), kGarbageTag),
      failed.end());
}

bool Scribble::was_sent_from(const Target& target) const {
  if (sources_.size() >= kMaxSources) return true;
  const uint64_t end = last_page(target.range, target.length_bytes);
  for (uint64_t page = first_page(target.range); page <= end; ++page)
    if (sources_.contains(page_key(target.range, page))) return true;
  return false;
}

}  // namespace rocemu::shake
