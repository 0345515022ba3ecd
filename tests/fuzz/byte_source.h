// An input as a stream of values. When it has run out every value is 0, so that each prefix of an
// input is an input as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::fuzz {

class ByteSource {
 public:
  ByteSource(const uint8_t* data, size_t size_bytes) : rest_(data, size_bytes) {}

  bool empty() const { return rest_.empty(); }

  uint8_t u8() {
    if (rest_.empty()) return 0;
    const uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  uint16_t u16() {
    const uint32_t low = u8();
    return static_cast<uint16_t>(low | uint32_t{u8()} << 8);
  }
  uint32_t u32() {
    const uint32_t low = u16();
    return low | uint32_t{u16()} << 16;
  }
  // 0 .. count-1, for a count of at most 256.
  uint32_t below(uint32_t count) { return u8() % count; }
  bool flag() { return (u8() & 1) != 0; }
  template <class T, size_t N>
  T pick(const T (&values)[N]) {
    static_assert(N <= 256);
    return values[below(N)];
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace rocemu::fuzz
