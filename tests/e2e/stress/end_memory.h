// The memory of one end, in the order in which it lies: buffers of its own requests, the window
// that its peer reads and writes, the landings of its peer's WRITEs with immediate, and the word of
// its peer's atomics. Behind each stands a guard. What nothing may have been written to is poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rocemu::e2e {

inline constexpr uint32_t kSlots = 8;     // requests in flight
inline constexpr uint32_t kLandings = 8;  // messages in flight
inline constexpr uint32_t kGuardBytes = 64;
inline constexpr std::byte kPoison{0xe5};

class EndMemory {
 public:
  EndMemory(std::byte* base, uint32_t max_bytes) : base_(base), stride_(stride(max_bytes)) {}

  static uint64_t stride(uint32_t max_bytes) { return (max_bytes + 7) / 8 * 8 + kGuardBytes; }
  static uint64_t bytes(uint32_t max_bytes) {
    return (kSlots + 1 + kLandings) * stride(max_bytes) + 8 + kGuardBytes;
  }

  std::byte* slot(uint32_t slot) const { return base_ + slot * stride_; }
  std::byte* window() const { return base_ + kSlots * stride_; }
  std::span<std::byte> landing(uint64_t message) const {
    return {base_ + (kSlots + 1 + message % kLandings) * stride_, stride_};
  }
  std::byte* word() const { return base_ + (kSlots + 1 + kLandings) * stride_; }
  std::byte* base() const { return base_; }
  // The same place in the peer's memory, which begins at that address.
  uint64_t at_peer(const void* place, uint64_t peer_base) const {
    return peer_base + static_cast<uint64_t>(static_cast<const std::byte*>(place) - base_);
  }

 private:
  std::byte* base_;
  uint64_t stride_;
};

inline void poison(std::span<std::byte> bytes) {
  std::memset(bytes.data(), std::to_integer<int>(kPoison), bytes.size());
}
// The first byte that is no poison, or the size.
inline size_t poison_difference(std::span<const std::byte> bytes) {
  const bool all_alike =
      bytes.empty() || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
  if (all_alike && (bytes.empty() || bytes[0] == kPoison)) return bytes.size();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != kPoison) return i;
  }
  return bytes.size();
}

}  // namespace rocemu::e2e
