// The lengths of flows: sizes and the share of flows that are no longer, with sizes spread evenly
// between two of them. Whole numbers alone, so that a seed gives the same sizes everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace rocemu::experiment {

class SizeDistribution {
 public:
  struct Point {
    uint64_t bytes;
    uint32_t share_ppm;  // share of the flows of at most so many bytes
  };

  SizeDistribution() = default;
  // All of one size.
  explicit SizeDistribution(uint64_t bytes) : points_{{bytes, 0}, {bytes, 1'000'000}} {}
  // Precondition: wrong(points) is empty.
  explicit SizeDistribution(std::vector<Point> points) : points_(std::move(points)) {}

  bool empty() const { return points_.empty(); }
  // At least 1.
  uint64_t draw(Random& random) const;
  uint64_t mean_bytes() const;

  // Returns why the points make no distribution, or nothing: sizes and shares have to grow, the
  // shares to 100 %.
  static std::string wrong(const std::vector<Point>& points);

 private:
  std::vector<Point> points_;
};

struct ParsedSizes {
  SizeDistribution sizes;
  std::string error;  // names the line; or nothing
};

// Lines of "BYTES SHARE%", and comments from # on.
ParsedSizes parse_sizes(std::string_view text);

// The text of a table that is part of rocemu; empty when there is none of that name.
std::string_view published_sizes(std::string_view name);
// Their names, with commas between.
std::string published_names();

}  // namespace rocemu::experiment
