// Both ends of a connection know the messages that take a receive, in order, and their bytes,
// without telling each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/e2e/bytes/random.h"

namespace rocemu::e2e {

enum class MessageKind { kSend, kSendWithImmediate, kWriteWithImmediate };

struct PlannedMessage {
  MessageKind kind;
  uint32_t bytes;
  uint32_t immediate;
  uint64_t pattern;  // of its bytes
};

// Message `number` of the end with this index.
PlannedMessage planned_message(uint64_t seed, uint32_t end, uint64_t number, uint32_t max_bytes);

void write_pattern(std::span<std::byte> to, uint64_t pattern);
// The first byte that is not as write_pattern leaves it, or the size when all are.
size_t pattern_difference(std::span<const std::byte> bytes, uint64_t pattern);

}  // namespace rocemu::e2e
