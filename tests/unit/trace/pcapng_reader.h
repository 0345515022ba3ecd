// Reads what the draft of the format says, and no more than rocemu writes.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace rocemu::trace {

struct SeenPacket {
  uint64_t unix_ns = 0;
  std::string bytes;
  uint32_t whole_bytes = 0;
  std::string comment;
};

inline std::vector<SeenPacket> read_pcapng(const std::string& file) {
  std::vector<SeenPacket> packets;
  const auto number = [&](size_t at) {
    uint32_t value;
    REQUIRE(at + 4 <= file.size());
    std::memcpy(&value, file.data() + at, 4);
    return value;
  };
  for (size_t at = 0; at < file.size();) {
    const uint32_t length = number(at + 4);
    REQUIRE(length % 4 == 0);
    REQUIRE(length >= 12);
    REQUIRE(number(at + length - 4) == length);
    if (number(at) == 6) {
      SeenPacket packet;
      packet.unix_ns = uint64_t{number(at + 12)} << 32 | number(at + 16);
      packet.bytes = file.substr(at + 28, number(at + 20));
      packet.whole_bytes = number(at + 24);
      const size_t options = at + 28 + (packet.bytes.size() + 3) / 4 * 4;
      if ((number(options) & 0xffff) == 1)
        packet.comment = file.substr(options + 4, number(options) >> 16);
      packets.push_back(packet);
    }
    at += length;
  }
  return packets;
}

}  // namespace rocemu::trace
