// The memory one end of a flow sends from or receives into, with a shadow that holds what every
// byte must be. Messages take chunks in order and give them back in order (a ring). A chunk is
// filled with a pattern of its own; what a message must change is written to the shadow, and the
// whole chunk is then compared: payload, the gaps between its pieces and the guards around them
// alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/e2e/tools/verbs_objects.h"

namespace rocemu::e2e {

struct Chunk {
  size_t offset = 0;
  size_t bytes = 0;
  size_t accounted_bytes = 0;  // with what was left over at the end of the ring
};

class Arena {
 public:
  explicit Arena(size_t bytes);

  size_t bytes() const { return memory_.bytes(); }
  size_t used_bytes() const { return used_; }
  uint64_t address() const { return memory_.address(); }

  // Nothing when it does not fit now. A chunk of up to a quarter of the arena always fits while at
  // most a quarter is used.
  std::optional<Chunk> allocate(size_t bytes);
  // The oldest chunk that is still allocated.
  void release(const Chunk& chunk);

  // Fills the chunk, and its shadow, with the pattern of this seed.
  void fill(const Chunk& chunk, uint64_t seed);
  // Overwrites the chunk with something else but leaves the shadow (a source after inline sending).
  void scribble(const Chunk& chunk);
  void restore(const Chunk& chunk);

  std::byte* shadow(size_t offset) { return shadow_.data() + offset; }

  // Describes where memory first differs from the shadow; nothing when it does not.
  std::optional<std::string> difference(const Chunk& chunk) const;
  std::optional<std::string> difference() const;

 private:
  Memory memory_;
  Memory shadow_;
  size_t head_ = 0;
  size_t used_ = 0;
};

}  // namespace rocemu::e2e
