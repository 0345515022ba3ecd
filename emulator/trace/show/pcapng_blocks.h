// The blocks that a pcapng file consists of (draft-ietf-opsawg-pcapng), in the byte order of this
// machine, with times in ns since 1970.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rocemu::trace::pcapng {

enum class BlockType : uint32_t {
  interface_description = 1,
  enhanced_packet = 6,
  section_header = 0x0a0d0d0a,
};

enum class Option : uint16_t {
  end = 0,
  comment = 1,
  name = 2,         // of an interface
  flags = 2,        // of a packet
  application = 4,  // of the section
  resolution = 9,   // of an interface's time stamps
};

enum class Direction : uint32_t { inbound = 1, outbound = 2 };

class Block {
 public:
  explicit Block(BlockType type) {
    number(static_cast<uint32_t>(type));
    number(uint32_t{0});  // its length, when it is known
  }
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void bytes(std::string_view some) {
    bytes_.append(some);
    bytes_.resize((bytes_.size() + 3) & ~size_t{3});
  }
  // What is beyond the longest comment is cut off.
  void option(Option code, std::string_view value) {
    constexpr size_t kMaxBytes = 4000;
    value = value.substr(0, kMaxBytes);
    number(static_cast<uint16_t>(code));
    number(static_cast<uint16_t>(value.size()));
    bytes(value);
  }
  // The whole block, as it stands in the file.
  std::string finish() && {
    option(Option::end, {});
    const auto length = static_cast<uint32_t>(bytes_.size() + sizeof(uint32_t));
    number(length);
    std::copy_n(reinterpret_cast<const char*>(&length), sizeof length, bytes_.begin() + 4);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

inline std::string section(std::string_view comment, std::string_view application) {
  constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
  Block block(BlockType::section_header);
  block.number(kByteOrderMagic);
  block.number(uint16_t{1});
  block.number(uint16_t{0});
  block.number(~uint64_t{0});  // the section's length is not told
  block.option(Option::comment, comment);
  block.option(Option::application, application);
  return std::move(block).finish();
}

// Interfaces are numbered in the order of their blocks, from 0 on.
inline std::string interface(std::string_view name) {
  constexpr uint16_t kEthernet = 1;
  Block block(BlockType::interface_description);
  block.number(kEthernet);
  block.number(uint16_t{0});
  block.number(uint32_t{0});  // no snaplen
  block.option(Option::name, name);
  block.option(Option::resolution, "\x09");  // ns
  return std::move(block).finish();
}

struct PacketHead {
  uint32_t interface = 0;
  uint64_t unix_ns = 0;
  size_t whole_bytes = 0;  // of which `bytes` are captured
  Direction direction = Direction::outbound;
};

// `comment` may be empty.
inline std::string packet(const PacketHead& head, std::span<const std::byte> bytes,
                          std::string_view comment) {
  Block block(BlockType::enhanced_packet);
  block.number(head.interface);
  block.number(static_cast<uint32_t>(head.unix_ns >> 32));
  block.number(static_cast<uint32_t>(head.unix_ns));
  block.number(static_cast<uint32_t>(bytes.size()));
  block.number(static_cast<uint32_t>(head.whole_bytes));
  block.bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!comment.empty()) block.option(Option::comment, comment);
  block.option(Option::flags,
               {reinterpret_cast<const char*>(&head.direction), sizeof head.direction});
  return std::move(block).finish();
}

}  // namespace rocemu::trace::pcapng
