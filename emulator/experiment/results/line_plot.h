// Lines in a diagram, as SVG. Coordinates are whole tenths of a pixel, so that the same points give
// the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rocemu::experiment {

struct PlotLine {
  std::string label;
  std::vector<std::pair<uint64_t, uint64_t>> points;  // by x, in ascending order
  bool steps = false;                                 // a value holds until the next one
};

struct PlotAxis {
  std::string label;
  uint64_t unit = 1;               // the value that is written as 1
  std::vector<std::string> names;  // names for 0, 1 and on, where it has no numbers
};

struct LinePlot {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotLine> lines;

  std::string svg() const;
};

}  // namespace rocemu::experiment
