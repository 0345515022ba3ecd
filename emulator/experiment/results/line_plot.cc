#include "emulator/experiment/results/line_plot.h"

#include <algorithm>
#include <array>

namespace rocemu::experiment {

namespace {

// Lengths are in tenths of a pixel.
constexpr uint64_t kWidth = 7200, kHeight = 4000;
constexpr uint64_t kLeft = 700, kRight = 1700, kTop = 350, kBottom = 500;
constexpr uint64_t kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr std::array<const char*, 10> kColours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728",
                                                  "#9467bd", "#8c564b", "#e377c2", "#7f7f7f",
                                                  "#bcbd22", "#17becf"};

std::string pixels(uint64_t tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string text_at(uint64_t x, uint64_t y, const char* anchor, const std::string& text) {
  return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

// A step of 1, 2 or 5 times a power of ten, of which `most` has four to ten.
uint64_t tick_step(uint64_t most) {
  uint64_t step = 1;
  for (int i = 0; most / step > 9; ++i) step = step / (i % 3 == 1 ? 2 : 1) * (i % 3 == 1 ? 5 : 2);
  return step;
}

// `value` over `unit`, to three places at most.
std::string in_units(uint64_t value, uint64_t unit) {
  const uint64_t thousandths = static_cast<uint64_t>(static_cast<unsigned __int128>(value) * 1000 /
                                                     std::max<uint64_t>(unit, 1));
  std::string text = std::to_string(thousandths / 1000);
  if (thousandths % 1000 == 0) return text;
  text += "." + std::to_string(1000 + thousandths % 1000).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

uint64_t scaled(uint64_t value, uint64_t most, uint64_t length) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(std::min(value, most)) * length /
                               std::max<uint64_t>(most, 1));
}

struct Scale {
  uint64_t x_most = 1;
  uint64_t y_most = 1;

  uint64_t x(uint64_t value) const { return kLeft + scaled(value, x_most, kPlotWidth); }
  uint64_t y(uint64_t value) const {
    return kTop + kPlotHeight - scaled(value, y_most, kPlotHeight);
  }
};

std::string grid(const LinePlot& plot, const Scale& scale) {
  std::string out;
  const auto line = [&](uint64_t x1, uint64_t y1, uint64_t x2, uint64_t y2) {
    out += "<line x1=\"" + pixels(x1) + "\" y1=\"" + pixels(y1) + "\" x2=\"" + pixels(x2) +
           "\" y2=\"" + pixels(y2) + "\" stroke=\"#ddd\"/>\n";
  };
  const bool named = !plot.x.names.empty();
  const uint64_t x_step = named ? 1 : tick_step(scale.x_most);
  for (uint64_t tick = 0; tick <= scale.x_most / x_step; ++tick) {
    const uint64_t at = tick * x_step;
    line(scale.x(at), kTop, scale.x(at), kTop + kPlotHeight);
    const bool room = !named || plot.x.names.size() <= 10 || at % 2 == 0;
    if (room && (!named || at < plot.x.names.size()))
      out += text_at(scale.x(at), kTop + kPlotHeight + 160, "middle",
                     named ? plot.x.names[at] : in_units(at, plot.x.unit));
  }
  const uint64_t y_step = tick_step(scale.y_most);
  for (uint64_t tick = 0; tick <= scale.y_most / y_step; ++tick) {
    const uint64_t at = tick * y_step;
    line(kLeft, scale.y(at), kLeft + kPlotWidth, scale.y(at));
    out += text_at(kLeft - 60, scale.y(at) + 40, "end", in_units(at, plot.y.unit));
  }
  return out;
}

std::string path_of(const PlotLine& line, const Scale& scale) {
  std::string out;
  for (size_t i = 0; i < line.points.size(); ++i) {
    const auto& [x, y] = line.points[i];
    if (line.steps && i > 0)
      out += " " + pixels(scale.x(x)) + "," + pixels(scale.y(line.points[i - 1].second));
    out += " " + pixels(scale.x(x)) + "," + pixels(scale.y(y));
  }
  return out;
}

}  // namespace

std::string LinePlot::svg() const {
  Scale scale;
  for (const PlotLine& line : lines)
    for (const auto& [at_x, at_y] : line.points) {
      scale.x_most = std::max(scale.x_most, at_x);
      scale.y_most = std::max(scale.y_most, at_y);
    }
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"400\" viewBox=\"0 0 720 "
      "400\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"720\" height=\"400\" fill=\"white\"/>\n";
  out += text_at(kLeft + kPlotWidth / 2, 200, "middle", title);
  out += grid(*this, scale);
  out += text_at(kLeft + kPlotWidth / 2, kHeight - 120, "middle", x.label);
  out += text_at(kLeft, kTop - 60, "middle", y.label);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string colour = kColours[i % kColours.size()];
    out += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + colour + "\" points=\"" +
           path_of(lines[i], scale) + "\"/>\n";
    const uint64_t at_y = kTop + 100 + 160 * i;
    out += "<rect x=\"" + pixels(kLeft + kPlotWidth + 120) + "\" y=\"" + pixels(at_y - 80) +
           "\" width=\"9\" height=\"9\" fill=\"" + colour + "\"/>\n";
    out += text_at(kLeft + kPlotWidth + 260, at_y, "start", lines[i].label);
  }
  return out + "</svg>\n";
}

}  // namespace rocemu::experiment
