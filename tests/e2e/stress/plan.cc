#include "tests/e2e/stress/plan.h"

#include <cstring>

namespace rocemu::e2e {

namespace {

// The index is multiplied, so that neighbouring words differ in many bits.
uint64_t pattern_word(uint64_t pattern, size_t index) {
  return pattern ^ ((index + 1) * 0x9e3779b97f4a7c15);
}

}  // namespace

PlannedMessage planned_message(uint64_t seed, uint32_t end, uint64_t number, uint32_t max_bytes) {
  Random random(mix64(mix64(seed + end) + number));
  PlannedMessage message{};
  message.kind = static_cast<MessageKind>(random.between(0, 2));
  message.bytes = random.one_in(32) ? 0 : random.log_uniform(max_bytes);
  message.immediate = random.next32();
  message.pattern = random.next();
  return message;
}

void write_pattern(std::span<std::byte> to, uint64_t pattern) {
  size_t done = 0;
  for (; done + 8 <= to.size(); done += 8) {
    const uint64_t word = pattern_word(pattern, done / 8);
    std::memcpy(to.data() + done, &word, 8);
  }
  const uint64_t word = pattern_word(pattern, done / 8);
  std::memcpy(to.data() + done, &word, to.size() - done);
}

size_t pattern_difference(std::span<const std::byte> bytes, uint64_t pattern) {
  for (size_t done = 0; done < bytes.size(); done += 8) {
    const uint64_t word = pattern_word(pattern, done / 8);
    const size_t size = bytes.size() - done < 8 ? bytes.size() - done : 8;
    if (std::memcmp(bytes.data() + done, &word, size) == 0) continue;
    for (size_t i = 0; i < size; ++i) {
      if (std::to_integer<uint8_t>(bytes[done + i]) != (word >> (8 * i) & 0xff)) return done + i;
    }
  }
  return bytes.size();
}

}  // namespace rocemu::e2e
