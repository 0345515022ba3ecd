// The places in the program's memory where a request's SGEs lie.
#pragma once

#include <vector>

#include "verbs_shim/checker/model/objects.h"
#include "verbs_shim/checker/model/span.h"

namespace rocemu::check {

// The SGEs of `request` that have a length, until it is over or asked for again. Null where one of
// them is not, or not surely, memory of the program's: device memory, a null region, a key of which
// nothing is known, a range that its region has not. The lock of the request's queue is held.
const std::vector<Span>* find_spans(const Context& context, Request& request);

// A region's own; empty for those without memory of the program's, and for all of its address
// space.
Span span_of(const MemoryRegion& region);

}  // namespace rocemu::check
