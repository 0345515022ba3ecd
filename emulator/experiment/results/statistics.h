// Figures of many values, of whole numbers alone: the same on every machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rocemu::experiment {

// The value that `share_ppm` of all are not above (nearest rank). Precondition: `sorted` is, and
// not empty.
inline uint64_t percentile(const std::vector<uint64_t>& sorted, uint32_t share_ppm) {
  const uint64_t rank = (sorted.size() * uint64_t{share_ppm} + 999'999) / 1'000'000;
  return sorted[std::max<uint64_t>(rank, 1) - 1];
}

// Jain's index in parts per million: 1,000,000 when all are equal. The values are below 2^40, and
// as many as memory has room for; 0 when there is nothing.
inline uint64_t jains_index_ppm(const std::vector<uint64_t>& values) {
  unsigned __int128 sum = 0, squares = 0;
  for (const uint64_t value : values) {
    sum += value;
    squares += static_cast<unsigned __int128>(value) * value;
  }
  const unsigned __int128 below = squares * values.size();
  if (below == 0) return 0;
  // The product with a million would not fit.
  unsigned __int128 above = sum * sum, unit = below;
  while (above >> 100 != 0) {
    above >>= 1;
    unit >>= 1;
  }
  return static_cast<uint64_t>(above * 1'000'000 / unit);
}

// `bytes` in `ns` as bits a second, rounded down.
inline uint64_t bits_per_s(uint64_t bytes, uint64_t ns) {
  if (ns == 0) return 0;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * 8'000'000'000 / ns);
}

// a / b in thousandths, rounded to the nearest.
inline uint64_t thousandths(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<uint64_t>((static_cast<unsigned __int128>(a) * 1000 + b / 2) / b);
}

// 1234 as "1.234".
inline std::string from_thousandths(uint64_t value) {
  const std::string rest = std::to_string(1000 + value % 1000);
  return std::to_string(value / 1000) + "." + rest.substr(1);
}

}  // namespace rocemu::experiment
