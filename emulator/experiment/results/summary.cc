#include "emulator/experiment/results/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "emulator/experiment/results/statistics.h"

namespace rocemu::experiment {

namespace {

using Json = nlohmann::ordered_json;

// The classes of sizes that figures are given for; the last one has no bound.
constexpr uint64_t kClassBytes[] = {1'000, 10'000, 100'000, 1'000'000, 10'000'000, UINT64_MAX};

// A quotient of whole numbers, which every machine rounds alike.
double in_thousandths(uint64_t value) { return static_cast<double>(value) / 1000; }
double in_ppm(uint64_t value) { return static_cast<double>(value) / 1'000'000; }

Json figures_of(std::vector<uint64_t> slowdowns) {
  std::ranges::sort(slowdowns);
  Json figures = {{"flows", slowdowns.size()}};
  if (slowdowns.empty()) return figures;
  unsigned __int128 sum = 0;
  for (const uint64_t slowdown : slowdowns) sum += slowdown;
  figures["mean"] = in_thousandths(static_cast<uint64_t>(sum / slowdowns.size()));
  const std::pair<const char*, uint32_t> kShares[] = {
      {"p50", 500'000}, {"p95", 950'000}, {"p99", 990'000}, {"p999", 999'000}, {"max", 1'000'000}};
  for (const auto& [name, share] : kShares)
    figures[name] = in_thousandths(percentile(slowdowns, share));
  return figures;
}

// The slowdowns of completed flows, of all and by their size.
Json slowdown(const std::vector<Flow>& flows, const std::vector<TimeNs>& ideal_ns) {
  std::vector<uint64_t> all;
  std::vector<std::vector<uint64_t>> by_class(std::size(kClassBytes));
  for (size_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = flows[i];
    if (flow.state != FlowState::completed) continue;
    all.push_back(thousandths(flow.end_ns - flow.start_ns, ideal_ns[i]));
    const auto* const size_class = std::ranges::lower_bound(kClassBytes, flow.bytes);
    by_class[static_cast<size_t>(size_class - kClassBytes)].push_back(all.back());
  }
  Json classes = Json::array();
  for (size_t i = 0; i < by_class.size(); ++i) {
    if (by_class[i].empty()) continue;
    Json figures = {{"up_to_bytes", kClassBytes[i] == UINT64_MAX ? Json() : Json(kClassBytes[i])}};
    figures.update(figures_of(std::move(by_class[i])));
    classes.push_back(std::move(figures));
  }
  return {{"all", figures_of(std::move(all))}, {"by_size", std::move(classes)}};
}

Json flow_counts(const std::vector<Flow>& flows) {
  uint64_t completed = 0, failed = 0, endless = 0;
  for (const Flow& flow : flows) {
    completed += flow.state == FlowState::completed;
    failed += flow.state == FlowState::failed;
    endless += flow.state == FlowState::open && flow.bytes == 0;
  }
  return {{"started", flows.size()},
          {"completed", completed},
          {"failed", failed},
          {"endless", endless},
          {"unfinished", flows.size() - completed - failed - endless}};
}

// For each workload, the bits that it moved in a second, and how evenly its flows had them.
Json workloads(const Experiment& experiment, const Outcome& outcome) {
  Json all = Json::object();
  const TimeNs warm_ns = experiment.results.warmup_ns;
  for (size_t i = 0; i < experiment.workloads.size(); ++i) {
    uint64_t bytes = 0, started = 0;
    TimeNs first = kNever, last = 0;
    std::vector<uint64_t> rates;
    for (const Flow& flow : outcome.flows) {
      if (flow.workload != i) continue;
      ++started;
      const TimeNs from = std::max(flow.start_ns, warm_ns);
      const TimeNs to = std::min(flow.end_ns, outcome.ended_ns);
      if (to <= from) continue;
      const uint64_t moved = flow.moved_bytes - flow.warm_bytes;
      bytes += moved;
      first = std::min(first, from);
      last = std::max(last, to);
      rates.push_back(bits_per_s(moved, to - from));
    }
    all[experiment.workloads[i].name] = {
        {"flows", started},
        {"goodput_bits_per_s", last > first ? bits_per_s(bytes, last - first) : 0},
        {"fairness", in_ppm(jains_index_ppm(rates))}};
  }
  return all;
}

Json network_figures(const Outcome& outcome) {
  uint64_t frames = 0, marked = 0, trimmed = 0, pauses = 0, queue_max = 0;
  TimeNs paused_ns = 0;
  Json lost = Json::object();
  for (const network::PortReport& port : outcome.ports) {
    frames += port.counters.frames;
    marked += port.counters.marked;
    trimmed += port.counters.trimmed;
    pauses += port.counters.pauses_sent;
    paused_ns += port.paused_ns;
    // A switch's; at a host's port nothing waits but what the NIC has just sent.
    for (const uint64_t bytes : port.counters.queue_max_bytes)
      queue_max = std::max(queue_max, bytes);
    for (size_t i = 0; i < network::kNetworkLosses; ++i) {
      if (port.counters.lost[i] == 0) continue;
      const std::string name(network::kNetworkLossNames[i]);
      lost[name] = lost.value(name, uint64_t{0}) + port.counters.lost[i];
    }
  }
  return {{"frames_delivered", outcome.frames_delivered},
          {"hops", frames},
          {"lost", std::move(lost)},
          {"marked", marked},
          {"trimmed", trimmed},
          {"pauses", pauses},
          {"paused_ns", paused_ns},
          {"queue_max_bytes", queue_max}};
}

Json nic_figures(const Outcome& outcome) {
  Json nics = Json::object();
  for (const auto& [event, name] : transport::kCounterNames) nics[name] = outcome.nics[event];
  nics["rx_cut_frames"] = outcome.cut_frames;
  return nics;
}

}  // namespace

std::string one_line(const Experiment& experiment, const Outcome& outcome) {
  uint64_t completed = 0, bytes = 0;
  for (const Flow& flow : outcome.flows) {
    completed += flow.state == FlowState::completed;
    bytes += flow.moved_bytes;
  }
  return experiment.name + (outcome.partial ? " (partial): " : ": ") + std::to_string(completed) +
         " of " + std::to_string(outcome.flows.size()) + " flows completed, " +
         std::to_string(bits_per_s(bytes, outcome.ended_ns) / 1'000'000) + " Mbit/s in " +
         std::to_string(outcome.ended_ns / 1000) + " us; results in ";
}

std::string summary_of(const Experiment& experiment, const Outcome& outcome,
                       const std::vector<TimeNs>& ideal_ns) {
  const Json summary = {{"experiment", experiment.name},
                        {"seed", experiment.seed},
                        {"partial", outcome.partial},
                        {"ended_ns", outcome.ended_ns},
                        {"flows", flow_counts(outcome.flows)},
                        {"slowdown", slowdown(outcome.flows, ideal_ns)},
                        {"workloads", workloads(experiment, outcome)},
                        {"network", network_figures(outcome)},
                        {"nics", nic_figures(outcome)}};
  return summary.dump(2) + "\n";
}

}  // namespace rocemu::experiment
