// Registered memory that is a file's in memory (tmpfs, memfd, hugetlbfs) and mapped shared can be
// mapped by the NIC as well, which then needs no system call to move its bytes. And on the
// program's wish, other memory is made such (ROCEMU_SHARE_MEMORY=1).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/provider/mapped_range.h"

namespace rocemu::provider {

// Whether the program wishes that.
bool wants_shared_memory();

// The file that `mapping` is of, open for reading and writing, and from then on the caller's; -1
// when it is none that a NIC maps, or cannot be opened here: without a name, nobody having it open.
int open_region_file(const Mapping& mapping);

// Puts a memfd with the same content in the place of the pages of [address, address + bytes), which
// `mapping` says what they are. The memfd, which is the caller's, and in `mapping` what is there
// now; -1, and all is as it was, for anything but private memory without a file that one mapping
// has all of, and while other threads or the NIC may be writing to it.
int make_region_file(uintptr_t address, size_t bytes, Mapping& mapping);

// Ranges that the NIC reaches in another way than by a file: they are not moved. `owner` is any
// value that names the range.
void note_unshared(const void* owner, uintptr_t address, size_t bytes);
void forget_unshared(const void* owner);

}  // namespace rocemu::provider
