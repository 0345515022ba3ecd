// Loads and stores of bytes at any address: big-endian as protocol headers are, little-endian as
// the ICRC is. The compiler makes one load or store, swapped where needed, of each.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rocemu {

template <typename T>
concept Byte = std::same_as<T, std::byte> || std::same_as<T, uint8_t>;

template <Byte B>
inline uint8_t load_u8(const B* p) {
  return static_cast<uint8_t>(*p);
}

template <Byte B>
inline uint16_t load_be16(const B* p) {
  return static_cast<uint16_t>(load_u8(p) << 8 | load_u8(p + 1));
}
template <Byte B>
inline uint32_t load_be24(const B* p) {
  return uint32_t{load_u8(p)} << 16 | uint32_t{load_u8(p + 1)} << 8 | load_u8(p + 2);
}
template <Byte B>
inline uint32_t load_be32(const B* p) {
  return uint32_t{load_u8(p)} << 24 | uint32_t{load_u8(p + 1)} << 16 |
         uint32_t{load_u8(p + 2)} << 8 | load_u8(p + 3);
}
template <Byte B>
inline uint32_t load_le32(const B* p) {
  return uint32_t{load_u8(p + 3)} << 24 | uint32_t{load_u8(p + 2)} << 16 |
         uint32_t{load_u8(p + 1)} << 8 | load_u8(p);
}
template <Byte B>
inline uint64_t load_be64(const B* p) {
  return uint64_t{load_be32(p)} << 32 | load_be32(p + 4);
}

template <Byte B>
inline void store_u8(B* p, uint32_t value) {
  *p = static_cast<B>(value & 0xff);
}

template <Byte B>
inline void store_be16(B* p, uint32_t value) {
  store_u8(p, value >> 8);
  store_u8(p + 1, value);
}
template <Byte B>
inline void store_be24(B* p, uint32_t value) {
  store_u8(p, value >> 16);
  store_u8(p + 1, value >> 8);
  store_u8(p + 2, value);
}
template <Byte B>
inline void store_be32(B* p, uint32_t value) {
  store_be16(p, value >> 16);
  store_be16(p + 2, value);
}
template <Byte B>
inline void store_le32(B* p, uint32_t value) {
  store_u8(p, value);
  store_u8(p + 1, value >> 8);
  store_u8(p + 2, value >> 16);
  store_u8(p + 3, value >> 24);
}
template <Byte B>
inline void store_be64(B* p, uint64_t value) {
  store_be32(p, static_cast<uint32_t>(value >> 32));
  store_be32(p + 4, static_cast<uint32_t>(value));
}

}  // namespace rocemu
