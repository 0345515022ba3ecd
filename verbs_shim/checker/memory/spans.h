// The places in the program's memory where a request's SGEs lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verbs_shim/checker/model/objects.h"

namespace rocemu::check {

// Bytes [from, from + bytes); never beyond the end of the address space.
struct Span {
  uintptr_t from = 0;
  size_t bytes = 0;

  uintptr_t to() const { return from + bytes; }
  bool meets(const Span& other) const { return from < other.to() && other.from < to(); }
};

// Fills `spans` with the SGEs of `request` that have a length. False where one of them is not, or
// not surely, memory of the program's: device memory, a null region, a key of which nothing is
// known, a range that its region has not. The content of `spans` means nothing then.
bool find_spans(const Context& context, const Request& request, std::vector<Span>& spans);

// A region's own; empty for those without memory of the program's, and for all of its address
// space.
Span span_of(const MemoryRegion& region);

}  // namespace rocemu::check
