// A range of the program's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu::check {

// Bytes [from, from + bytes); never beyond the end of the address space.
struct Span {
  uintptr_t from = 0;
  size_t bytes = 0;

  uintptr_t to() const { return from + bytes; }
  bool meets(const Span& other) const { return from < other.to() && other.from < to(); }
};

}  // namespace rocemu::check
