// Whether the program's memory can be read: it may have unmapped what it has registered, and a
// fault in the checker would be the program's end.
//
// A page that could be read is believed for a short time, as asking is a system call: until then
// memory that goes is heard of (watched_memory.h), and no thread can have gone far with a system
// call of its own that takes a page away.
#pragma once

#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

// `span` is not empty.
bool is_readable(const Span& span);

// Nothing is believed of any page any more: some are going.
void forget_readable_pages();

}  // namespace rocemu::check
