// Types that all parts of the connection manager share.
#pragma once

#include <cstdint>
#include <functional>
#include <tl/expected.hpp>

#include "base/time.h"
#include "emulator/wire/mad.h"
#include "emulator/wire/types.h"

namespace rocemu::cm {

template <class T>
using Result = tl::expected<T, int>;  // the error is a positive errno

// The way of a MAD: out of (or into) one of the NIC's devices, between two addresses.
struct Route {
  uint32_t device = 0;
  wire::Gid local{};
  wire::Gid remote{};
};

struct OutgoingMad {
  Route route;
  wire::MadBytes mad;
};

// The time that a coded timeout of the CM stands for: 4.096 us * 2^code.
constexpr TimeNs coded_time_ns(uint8_t code) { return TimeNs{4096} << (code & 31); }

// The source of communication ids, starting PSNs, flow labels and ephemeral ports. A peer that can
// guess them can forge messages of other connections (IBTA vol 1, 12.9.8.1), so the NIC takes them
// from the kernel's generator; tests bring a seeded one, so that a run repeats.
using RandomSource = std::function<uint64_t()>;

}  // namespace rocemu::cm
