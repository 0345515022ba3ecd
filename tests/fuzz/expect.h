// Fuzz targets hold the code against what they expect. A broken invariant aborts, in every build
// type, which is what fuzzers report and keep an input for.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace rocemu::fuzz {

inline void expect(bool holds, const char* invariant, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: broken: %s\n", file, line, invariant);
  std::abort();
}

}  // namespace rocemu::fuzz
