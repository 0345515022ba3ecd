// Loads and stores at any address: big-endian as all headers are, little-endian as the ICRC is. The
// compiler makes one load or store, swapped where needed, of each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu::wire {

inline uint8_t load_u8(const std::byte* p) { return std::to_integer<uint8_t>(*p); }

inline uint16_t load_be16(const std::byte* p) {
  return static_cast<uint16_t>(load_u8(p) << 8 | load_u8(p + 1));
}
inline uint32_t load_be24(const std::byte* p) {
  return uint32_t{load_u8(p)} << 16 | uint32_t{load_u8(p + 1)} << 8 | load_u8(p + 2);
}
inline uint32_t load_be32(const std::byte* p) {
  return uint32_t{load_u8(p)} << 24 | uint32_t{load_u8(p + 1)} << 16 |
         uint32_t{load_u8(p + 2)} << 8 | load_u8(p + 3);
}
inline uint32_t load_le32(const std::byte* p) {
  return uint32_t{load_u8(p + 3)} << 24 | uint32_t{load_u8(p + 2)} << 16 |
         uint32_t{load_u8(p + 1)} << 8 | load_u8(p);
}
inline uint64_t load_be64(const std::byte* p) {
  return uint64_t{load_be32(p)} << 32 | load_be32(p + 4);
}

inline void store_u8(std::byte* p, uint32_t value) { *p = static_cast<std::byte>(value & 0xff); }

inline void store_be16(std::byte* p, uint32_t value) {
  store_u8(p, value >> 8);
  store_u8(p + 1, value);
}
inline void store_be24(std::byte* p, uint32_t value) {
  store_u8(p, value >> 16);
  store_u8(p + 1, value >> 8);
  store_u8(p + 2, value);
}
inline void store_be32(std::byte* p, uint32_t value) {
  store_be16(p, value >> 16);
  store_be16(p + 2, value);
}
inline void store_le32(std::byte* p, uint32_t value) {
  store_u8(p, value);
  store_u8(p + 1, value >> 8);
  store_u8(p + 2, value >> 16);
  store_u8(p + 3, value >> 24);
}
inline void store_be64(std::byte* p, uint64_t value) {
  store_be32(p, static_cast<uint32_t>(value >> 32));
  store_be32(p + 4, static_cast<uint32_t>(value));
}

}  // namespace rocemu::wire
