#include "emulator/device/memory/hca_memory.h"

#include <cstdint>
#include <optional>

#include "emulator/dma/atomics.h"
#include "emulator/dma/guarded_access.h"

namespace rocemu::device {

namespace {

dma::AddressSpace& space_of(const transport::MemoryRange& range) {
  return *static_cast<dma::AddressSpace*>(range.space);
}

void flush(dma::Batch& batch, std::vector<uint32_t>& earlier, std::vector<uint32_t>& failed) {
  failed.insert(failed.end(), earlier.begin(), earlier.end());
  earlier.clear();
  if (!batch.empty()) batch.flush(failed);
}

// A failure behind all those of the batch.
void fail(dma::Batch& batch, std::vector<uint32_t>& failed, uint32_t tag) {
  if (!batch.empty()) batch.flush(failed);
  failed.push_back(tag);
}

bool store(std::optional<uint64_t> value, uint64_t& original) {
  if (!value) return false;
  original = *value;
  return true;
}

}  // namespace

bool HcaMemory::check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address,
                            uint32_t length_bytes, uint32_t access,
                            transport::MemoryRange& range) noexcept {
  return regions_.check(pd, wire::Qpn{}, lkey.value, address, length_bytes, access | kUseAsLkey,
                        range);
}

bool HcaMemory::check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey,
                             uint64_t address, uint32_t length_bytes, uint32_t access,
                             transport::MemoryRange& range) noexcept {
  return regions_.check(pd, qpn, rkey.value, address, length_bytes, access | kUseAsRkey, range);
}

bool HcaMemory::grants_remote(transport::PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                              uint32_t access) noexcept {
  return regions_.find(pd, qpn, asked.rkey.value, access | kUseAsRkey) != nullptr;
}

bool HcaMemory::bind_window(transport::PdHandle pd, wire::Qpn qpn,
                            const transport::WindowBinding& binding) noexcept {
  return regions_.bind(pd, qpn, binding);
}

bool HcaMemory::invalidate(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey) noexcept {
  return regions_.invalidate(pd, qpn, rkey.value);
}

void HcaMemory::fetch(const transport::MemoryRange& range, std::byte* into, uint32_t length_bytes,
                      uint32_t tag) noexcept {
  if (range.mapped != nullptr) {
    if (!dma::guarded_read(into, range.mapped, length_bytes)) fail(fetches_, failed_fetches_, tag);
    return;
  }
  if (fetches_.full()) fetches_.flush(failed_fetches_);
  fetches_.add(space_of(range), range.address, into, length_bytes, tag);
}

void HcaMemory::scatter(const transport::MemoryRange& range, const std::byte* from,
                        uint32_t length_bytes, uint32_t tag) noexcept {
  if (range.mapped != nullptr) {
    // Programs see WRITEs in the order of their packets, whichever way they go.
    if (!scatters_.empty()) scatters_.flush(failed_scatters_);
    if (range.mapped == from) return;  // the data of a READ that has landed
    if (!dma::guarded_write(range.mapped, from, length_bytes)) failed_scatters_.push_back(tag);
    return;
  }
  if (is_lent(from)) {
    // A move into one program never waits for the memory of another, for which the first would have
    // to answer (daemon/move_watchdog.h).
    std::byte* const own = lent_room_ + (from - lent_.data());
    if (!take_lent({from, length_bytes}, own)) return fail(scatters_, failed_scatters_, tag);
    from = own;
  }
  if (scatters_.full()) scatters_.flush(failed_scatters_);
  scatters_.add(space_of(range), range.address, from, length_bytes, tag);
}

bool HcaMemory::can_lend(const transport::MemoryRange& range, uint32_t length_bytes) noexcept {
  return range.mapped != nullptr && dma::guarded_look(range.mapped, length_bytes);
}

// A copy between addresses that lie differently would split words that the program writes whole.
bool HcaMemory::land(const transport::MemoryRange& range, std::byte* to,
                     uint32_t length_bytes) noexcept {
  const auto place = [](const std::byte* at) {
    return reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t);
  };
  return range.mapped != nullptr && place(range.mapped) == place(to) &&
         dma::guarded_write(to, range.mapped, length_bytes);
}

void HcaMemory::settle_fetches() noexcept {
  if (!fetches_.empty()) fetches_.flush(failed_fetches_);
}

bool HcaMemory::begin_lent(std::span<const std::byte> lent, std::byte* room) noexcept {
  if (!dma::guarded_look(lent.data(), lent.size())) return false;
  lent_ = lent;
  lent_room_ = room;
  return true;
}

bool HcaMemory::take_lent(std::span<const std::byte> lent, std::byte* into) noexcept {
  return dma::guarded_read(into, lent.data(), lent.size());
}

void HcaMemory::flush_fetches(std::vector<uint32_t>& failed) noexcept {
  flush(fetches_, failed_fetches_, failed);
}

void HcaMemory::flush_scatters(std::vector<uint32_t>& failed) noexcept {
  flush(scatters_, failed_scatters_, failed);
}

bool HcaMemory::compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                             uint64_t& original) noexcept {
  if (range.mapped != nullptr)
    return store(dma::compare_swap(range.mapped, compare, swap), original);
  return store(dma::compare_swap(space_of(range), range.address, compare, swap), original);
}

bool HcaMemory::fetch_add(const transport::MemoryRange& range, uint64_t add,
                          uint64_t& original) noexcept {
  if (range.mapped != nullptr) return store(dma::fetch_add(range.mapped, add), original);
  return store(dma::fetch_add(space_of(range), range.address, add), original);
}

}  // namespace rocemu::device
