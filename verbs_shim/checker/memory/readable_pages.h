// Whether the program's memory can be read: it may have unmapped what it has registered, and a
// fault in the checker would be the program's end.
//
// A page that could be read is believed for a short time, as asking is a system call: memory that
// goes is heard of (watched_memory.h) unless a program takes it away by a system call of its own.
// The time is 50 us at first, and twice as long each time that the page could still be read, up to
// 1.6 ms.
#pragma once

#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

// `span` is not empty.
bool is_readable(const Span& span);

// Nothing is believed of any page any more: some are going.
void forget_readable_pages();

}  // namespace rocemu::check
