#include "emulator/experiment/results/plots.h"

#include <algorithm>
#include <map>

#include "emulator/experiment/results/line_plot.h"
#include "emulator/experiment/results/statistics.h"

namespace rocemu::experiment {

namespace {

constexpr size_t kMaxLines = 10;
constexpr size_t kMaxBins = 20;

std::string size_text(uint64_t bytes) {
  if (bytes >= 1'000'000) return std::to_string(bytes / 1'000'000) + "M";
  if (bytes >= 1'000) return std::to_string(bytes / 1'000) + "k";
  return std::to_string(bytes);
}

// Flows by size in groups of as many each: a point for each group, where its largest flow is.
LinePlot slowdowns(const Experiment& experiment, const Outcome& outcome,
                   const std::vector<TimeNs>& ideal_ns) {
  std::vector<std::pair<uint64_t, uint64_t>> flows;  // size, slowdown
  for (size_t i = 0; i < outcome.flows.size(); ++i) {
    const Flow& flow = outcome.flows[i];
    if (flow.state == FlowState::completed)
      flows.emplace_back(flow.bytes, thousandths(flow.end_ns - flow.start_ns, ideal_ns[i]));
  }
  std::ranges::sort(flows);
  LinePlot plot{.title = experiment.name + ": slowdown by size",
                .x = {.label = "size, bytes (as many flows to each point)", .unit = 1, .names = {}},
                .y = {.label = "slowdown", .unit = 1000, .names = {}},
                .lines = {{.label = "p50", .points = {}},
                          {.label = "p95", .points = {}},
                          {.label = "p99", .points = {}}}};
  const size_t bins = std::min(kMaxBins, flows.size());
  for (size_t bin = 0; bin < bins; ++bin) {
    const size_t first = flows.size() * bin / bins;
    const size_t end = flows.size() * (bin + 1) / bins;
    std::vector<uint64_t> values;
    for (size_t i = first; i < end; ++i) values.push_back(flows[i].second);
    std::ranges::sort(values);
    plot.x.names.push_back(size_text(flows[end - 1].first));
    const uint32_t shares[] = {500'000, 950'000, 990'000};
    for (size_t i = 0; i < 3; ++i)
      plot.lines[i].points.emplace_back(bin, percentile(values, shares[i]));
  }
  if (bins == 0) plot.lines.clear();
  return plot;
}

// The lines with the largest `weight`, in the order of their keys.
template <class Key>
std::vector<Key> heaviest(const std::map<Key, uint64_t>& weights) {
  std::vector<std::pair<uint64_t, Key>> sorted;
  for (const auto& [key, weight] : weights) sorted.emplace_back(weight, key);
  std::ranges::stable_sort(sorted, std::greater{}, &std::pair<uint64_t, Key>::first);
  if (sorted.size() > kMaxLines) sorted.resize(kMaxLines);
  std::vector<Key> keys;
  for (const auto& each : sorted) keys.push_back(each.second);
  std::ranges::sort(keys);
  return keys;
}

LinePlot queues(const Experiment& experiment, const Outcome& outcome) {
  LinePlot plot{.title = experiment.name + ": the longest queues",
                .x = {.label = "time, us", .unit = 1000, .names = {}},
                .y = {.label = "kB", .unit = 1000, .names = {}},
                .lines = {}};
  std::map<uint32_t, uint64_t> longest;
  for (const QueueSample& sample : outcome.series.queues)
    longest[sample.port] = std::max(longest[sample.port], sample.bytes);
  for (const uint32_t port : heaviest(longest)) {
    const network::PortReport& report = outcome.ports[port];
    PlotLine line{
        .label = report.node + " to " + report.far_node, .points = {{0, 0}}, .steps = true};
    for (const QueueSample& sample : outcome.series.queues)
      if (sample.port == port) line.points.emplace_back(sample.at_ns, sample.bytes);
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

LinePlot rates(const Experiment& experiment, const Outcome& outcome) {
  LinePlot plot{.title = experiment.name + ": goodput of the largest flows",
                .x = {.label = "time, us", .unit = 1000, .names = {}},
                .y = {.label = "Gbit/s", .unit = 1'000'000'000, .names = {}},
                .lines = {}};
  std::map<uint32_t, uint64_t> moved;
  for (const RateSample& sample : outcome.series.rates) moved[sample.flow] += sample.moved_bytes;
  const TimeNs interval_ns = experiment.results.interval_ns;
  for (const uint32_t flow : heaviest(moved)) {
    PlotLine line{.label = "flow " + std::to_string(flow), .points = {}};
    TimeNs last = 0;
    for (const RateSample& sample : outcome.series.rates) {
      if (sample.flow != flow) continue;
      // In intervals that are not in the series nothing was moved.
      if (sample.at_ns > last + interval_ns) {
        if (!line.points.empty()) line.points.emplace_back(last + interval_ns, 0);
        line.points.emplace_back(sample.at_ns - interval_ns, 0);
      }
      last = sample.at_ns;
      line.points.emplace_back(sample.at_ns, bits_per_s(sample.moved_bytes, interval_ns));
    }
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> plots_of(const Experiment& experiment,
                                                          const Outcome& outcome,
                                                          const std::vector<TimeNs>& ideal_ns) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto add = [&](const char* name, const LinePlot& plot) {
    if (!plot.lines.empty()) files.emplace_back(name, plot.svg());
  };
  add("slowdown.svg", slowdowns(experiment, outcome, ideal_ns));
  add("queues.svg", queues(experiment, outcome));
  add("rates.svg", rates(experiment, outcome));
  return files;
}

}  // namespace rocemu::experiment
