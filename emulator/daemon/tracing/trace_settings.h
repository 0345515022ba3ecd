// What is traced, and how much of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/trace/record/filter.h"

namespace rocemu::daemon {

struct TraceSettings {
  trace::Filter filter;
  std::vector<std::string> devices;  // names; empty: all
  uint64_t max_bytes = kDefaultMaxBytes;
  // Nothing is written before a QP fails or a program dies, and then the last records: so many of a
  // device, rounded up to a power of two. Each takes 64 bytes of memory.
  bool on_error = false;
  uint64_t last_records = kDefaultLast;

  static constexpr uint64_t kDefaultMaxBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMinLast = uint64_t{1} << 10;
  static constexpr uint64_t kDefaultLast = uint64_t{1} << 16;
  static constexpr uint64_t kMaxLast = uint64_t{1} << 24;
};

}  // namespace rocemu::daemon
