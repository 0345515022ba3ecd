#include "tests/e2e/bytes/arena.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/e2e/bytes/random.h"
#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

// Sixteen random words are enough to tell a byte's place within 128; the word's own index, mixed in
// cheaply, tells it beyond.
void fill_pattern(std::byte* to, size_t bytes, uint64_t seed) {
  uint64_t base[16];
  for (uint64_t i = 0; i < 16; ++i) base[i] = mix64(seed + i);
  size_t done = 0;
  for (uint64_t word = 0; done + 8 <= bytes; ++word, done += 8) {
    const uint64_t value = base[word % 16] ^ (word * 0xff51afd7ed558ccd);
    std::memcpy(to + done, &value, 8);
  }
  const uint64_t rest = mix64(~seed);
  std::memcpy(to + done, &rest, bytes - done);
}

}  // namespace

Arena::Arena(size_t bytes) : memory_(bytes), shadow_(bytes) {}

std::optional<Chunk> Arena::allocate(size_t wanted) {
  if (wanted > bytes()) fail("a chunk of %zu bytes in an arena of %zu", wanted, bytes());
  const size_t to_end = bytes() - head_;
  const size_t skipped = wanted > to_end ? to_end : 0;
  if (used_ + skipped + wanted > bytes()) return std::nullopt;
  const Chunk chunk{skipped != 0 ? 0 : head_, wanted, wanted + skipped};
  head_ = chunk.offset + wanted;
  used_ += chunk.accounted_bytes;
  return chunk;
}

void Arena::release(const Chunk& chunk) { used_ -= chunk.accounted_bytes; }

void Arena::fill(const Chunk& chunk, uint64_t seed) {
  fill_pattern(shadow(chunk.offset), chunk.bytes, seed);
  restore(chunk);
}

void Arena::scribble(const Chunk& chunk) {
  std::memset(memory_.data() + chunk.offset, 0xe5, chunk.bytes);
}

void Arena::restore(const Chunk& chunk) {
  std::memcpy(memory_.data() + chunk.offset, shadow(chunk.offset), chunk.bytes);
}

std::optional<std::string> Arena::difference(const Chunk& chunk) const {
  const std::byte* is = memory_.data() + chunk.offset;
  const std::byte* must_be = shadow_.data() + chunk.offset;
  if (std::memcmp(is, must_be, chunk.bytes) == 0) return std::nullopt;
  const size_t first = static_cast<size_t>(std::mismatch(is, is + chunk.bytes, must_be).first - is);
  size_t wrong = 0;
  for (size_t i = first; i < chunk.bytes; ++i) wrong += is[i] != must_be[i] ? 1 : 0;
  char text[160];
  std::snprintf(text, sizeof text,
                "%zu of %zu bytes wrong, first at +%zu (address %#llx): is %#04x, must be %#04x",
                wrong, chunk.bytes, first,
                static_cast<unsigned long long>(address() + chunk.offset + first),
                std::to_integer<unsigned>(is[first]), std::to_integer<unsigned>(must_be[first]));
  return text;
}

std::optional<std::string> Arena::difference() const { return difference(Chunk{0, bytes(), 0}); }

}  // namespace rocemu::e2e
