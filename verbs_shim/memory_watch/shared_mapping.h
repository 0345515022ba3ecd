// Which memory of this process is a shared mapping, of which MADV_DONTNEED takes no page away.
#pragma once

#include <stdint.h>

namespace rocemu::memory_watch {

// Reads /proc/self/maps up to there; false where that cannot be read. Allocates nothing.
bool is_shared(uintptr_t address);

}  // namespace rocemu::memory_watch
