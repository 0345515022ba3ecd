// Management datagrams: the 24-byte header that all of them have (IBTA vol 1, 13.4.3), and what the
// general service interface (QP1) is addressed by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/wire/types.h"

namespace rocemu::wire {

inline constexpr size_t kMadBytes = 256;
inline constexpr size_t kMadHeaderBytes = 24;
inline constexpr Qpn kGsiQpn{1};
inline constexpr uint32_t kGsiQkey = 0x80010000;

using MadBytes = std::array<std::byte, kMadBytes>;

struct MadHeader {
  uint8_t base_version = 1;
  uint8_t management_class = 0;
  uint8_t class_version = 0;
  uint8_t method = 0;
  uint16_t status = 0;
  uint16_t class_specific = 0;
  uint64_t transaction_id = 0;
  uint16_t attribute_id = 0;
  uint32_t attribute_modifier = 0;
};

MadHeader load_mad_header(const std::byte* mad);
void store_mad_header(std::byte* mad, const MadHeader& header);

}  // namespace rocemu::wire
