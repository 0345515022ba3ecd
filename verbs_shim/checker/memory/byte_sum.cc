#include "verbs_shim/checker/memory/byte_sum.h"

#include <algorithm>
#include <cstring>

#include "verbs_shim/checker/memory/readable_pages.h"

namespace rocemu::check {
namespace {

constexpr size_t kAllBytes = 16384;
constexpr size_t kEndBytes = 4096;
constexpr size_t kPieceBytes = 256;
constexpr int kPieces = 32;
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

uint64_t load(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t mix(uint64_t sum, uint64_t word) {
  const auto product = static_cast<unsigned __int128>(sum ^ word) * kMultiplier;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ word;
}

uint64_t add(uint64_t sum, const Span& span) {
  const auto* at = reinterpret_cast<const unsigned char*>(span.from);
  size_t left = span.bytes;
  // Four sums at once, as a multiplication takes some cycles.
  uint64_t sums[4] = {sum, ~sum, sum * kMultiplier, sum + kMultiplier};
  for (; left >= 32; left -= 32, at += 32) {
    for (size_t i = 0; i < 4; ++i) sums[i] = mix(sums[i], load(at + 8 * i));
  }
  for (; left >= 8; left -= 8, at += 8) sums[0] = mix(sums[0], load(at));
  unsigned char tail[8] = {};
  std::memcpy(tail, at, left);
  sums[0] = mix(sums[0], load(tail));
  return mix(mix(sums[0], sums[1]), mix(sums[2], sums[3])) + span.bytes;
}

bool add_safely(uint64_t& sum, const Span& span) {
  if (!is_readable(span)) return false;
  sum = add(sum, span);
  return true;
}

bool add_sample(uint64_t& sum, const Span& span, uint64_t seed) {
  if (!add_safely(sum, {span.from, kEndBytes})) return false;
  if (!add_safely(sum, {span.to() - kEndBytes, kEndBytes})) return false;
  const size_t room = span.bytes - 2 * kEndBytes - kPieceBytes;
  for (int piece = 0; piece < kPieces; ++piece) {
    seed = mix(seed, kMultiplier);
    if (!add_safely(sum, {span.from + kEndBytes + seed % room, kPieceBytes})) return false;
  }
  return true;
}

}  // namespace

uint64_t byte_sum(std::span<const Span> spans, uint64_t seed) {
  uint64_t sum = kMultiplier;
  for (const Span& span : spans) {
    if (span.bytes == 0) continue;
    const bool done = span.bytes <= kAllBytes ? add_safely(sum, span) : add_sample(sum, span, seed);
    if (!done) return 0;
  }
  return std::max<uint64_t>(sum, 1);
}

}  // namespace rocemu::check
