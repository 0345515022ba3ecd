#pragma once

#include <unistd.h>

#include <cstddef>

namespace rocemu::test {

// A page of this machine: 4 KiB on x86-64, up to 64 KiB elsewhere.
inline const size_t kPageBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));

}  // namespace rocemu::test
