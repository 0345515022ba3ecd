// A copy of data of the program's that the program does not know of, nor its sanitizers.
#pragma once

#include <stdint.h>

namespace rocemu::provider {

inline constexpr uint32_t kSmallCopyMax = 16;

// The first and the last word of what is as long as one or two: they may overlap.
template <typename Word>
void copy_ends(void* to, const void* from, uint32_t bytes) {
  const uint32_t last_at = bytes - sizeof(Word);
  Word first;
  Word last;
  __builtin_memcpy(&first, from, sizeof(Word));
  __builtin_memcpy(&last, static_cast<const uint8_t*>(from) + last_at, sizeof(Word));
  __builtin_memcpy(to, &first, sizeof(Word));
  __builtin_memcpy(static_cast<uint8_t*>(to) + last_at, &last, sizeof(Word));
}

// Copies 1 to kSmallCopyMax bytes without memcpy(), for which ThreadSanitizer has a function of its
// own: that would take this for an access by the program, and for one that races.
inline void copy_small(void* to, const void* from, uint32_t bytes) {
  if (bytes >= sizeof(uint64_t)) return copy_ends<uint64_t>(to, from, bytes);
  if (bytes >= sizeof(uint32_t)) return copy_ends<uint32_t>(to, from, bytes);
  if (bytes >= sizeof(uint16_t)) return copy_ends<uint16_t>(to, from, bytes);
  copy_ends<uint8_t>(to, from, bytes);
}

}  // namespace rocemu::provider
