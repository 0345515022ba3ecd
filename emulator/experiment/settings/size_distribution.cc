#include "emulator/experiment/settings/size_distribution.h"

#include <algorithm>
#include <sstream>

#include "impairment/quantity.h"

namespace rocemu::experiment {

namespace {

constexpr uint32_t kAllPpm = 1'000'000;

}  // namespace

std::string SizeDistribution::wrong(const std::vector<Point>& points) {
  if (points.size() < 2) return "two sizes at least make a distribution";
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].bytes < points[i - 1].bytes) return "sizes do not grow";
    if (points[i].share_ppm < points[i - 1].share_ppm) return "shares do not grow";
  }
  if (points.back().share_ppm != kAllPpm) return "the last share is not 100%";
  if (points.back().bytes == 0) return "the largest size is nothing";
  return "";
}

uint64_t SizeDistribution::draw(Random& random) const {
  const auto share = static_cast<uint32_t>(random.below(kAllPpm));
  const auto above = std::ranges::upper_bound(points_, share, {}, &Point::share_ppm);
  if (above == points_.begin()) return std::max<uint64_t>(1, above->bytes);
  const Point& below = *(above - 1);
  const uint64_t into = (above->bytes - below.bytes) * (share - below.share_ppm) /
                        (above->share_ppm - below.share_ppm);
  return std::max<uint64_t>(1, below.bytes + into);
}

uint64_t SizeDistribution::mean_bytes() const {
  unsigned __int128 twice =
      static_cast<unsigned __int128>(2) * points_.front().bytes * points_.front().share_ppm;
  for (size_t i = 1; i < points_.size(); ++i)
    twice += static_cast<unsigned __int128>(points_[i].bytes + points_[i - 1].bytes) *
             (points_[i].share_ppm - points_[i - 1].share_ppm);
  return std::max<uint64_t>(1, static_cast<uint64_t>(twice / (2 * uint64_t{kAllPpm})));
}

ParsedSizes parse_sizes(std::string_view text) {
  std::vector<SizeDistribution::Point> points;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string size, share, more;
    if (!(words >> size)) continue;
    words >> share;
    const auto bytes = impairment::parse_quantity(impairment::kSize, size);
    const auto ppm = impairment::parse_quantity(impairment::kProbability, share);
    std::string error = !bytes.value ? bytes.error : !ppm.value ? ppm.error : "";
    if (words >> more) error = "'" + more + "' is too much; a line is a size and a share";
    if (!error.empty()) return {{}, "line " + std::to_string(number) + ": " + error};
    points.push_back({*bytes.value, static_cast<uint32_t>(*ppm.value)});
  }
  std::string wrong = SizeDistribution::wrong(points);
  if (!wrong.empty()) return {{}, wrong};
  return {SizeDistribution(std::move(points)), ""};
}

}  // namespace rocemu::experiment
