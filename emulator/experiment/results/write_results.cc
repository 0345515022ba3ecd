#include "emulator/experiment/results/write_results.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "emulator/experiment/results/ideal_time.h"
#include "emulator/experiment/results/plots.h"
#include "emulator/experiment/results/statistics.h"
#include "emulator/experiment/results/summary.h"

namespace rocemu::experiment {

namespace {

const char* name_of(Verb verb) {
  switch (verb) {
    case Verb::write:
      return "write";
    case Verb::write_imm:
      return "write_imm";
    case Verb::send:
      return "send";
    case Verb::read:
      return "read";
  }
  return "";
}

const char* name_of(const Flow& flow) {
  switch (flow.state) {
    case FlowState::completed:
      return "completed";
    case FlowState::failed:
      return "failed";
    case FlowState::open:
      return flow.bytes == 0 ? "endless" : "unfinished";
  }
  return "";
}

class Names {
 public:
  explicit Names(const network::Topology& topology) : topology_(topology) {
    for (const uint32_t node : topology.hosts()) hosts_.push_back(topology.nodes[node].name);
  }
  const std::string& host(uint32_t number) const { return hosts_[number]; }
  std::string port(uint32_t number) const {
    const network::Topology::Link& link = topology_.links[network::link_of(number)];
    const bool at_b = number % 2 != 0;
    return topology_.nodes[at_b ? link.b : link.a].name + " " +
           topology_.nodes[at_b ? link.a : link.b].name;
  }

 private:
  const network::Topology& topology_;
  std::vector<std::string> hosts_;
};

template <class Write>
void write_file(const std::filesystem::path& file, Write write) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  write(stream);
  stream.close();
  if (!stream)
    throw std::runtime_error(file.string() + " cannot be written: " + std::strerror(errno));
}

void write_flows(std::ostream& out, const Experiment& experiment, const Outcome& outcome,
                 const std::vector<TimeNs>& ideal_ns) {
  const Names names(experiment.network.topology);
  out << "flow,workload,from,to,verb,size_bytes,moved_bytes,start_ns,end_ns,ideal_ns,slowdown,"
         "state\n";
  for (size_t i = 0; i < outcome.flows.size(); ++i) {
    const Flow& flow = outcome.flows[i];
    out << i << ',' << experiment.workloads[flow.workload].name << ',' << names.host(flow.from)
        << ',' << names.host(flow.to) << ',' << name_of(flow.verb) << ',';
    if (flow.bytes != 0) out << flow.bytes;
    out << ',' << flow.moved_bytes << ',' << flow.start_ns << ',';
    if (flow.state == FlowState::completed) out << flow.end_ns;
    out << ',';
    if (flow.bytes != 0) out << ideal_ns[i];
    out << ',';
    if (flow.state == FlowState::completed)
      out << from_thousandths(thousandths(flow.end_ns - flow.start_ns, ideal_ns[i]));
    out << ',' << name_of(flow) << '\n';
  }
}

void write_series(const Experiment& experiment, const Series& series,
                  const std::filesystem::path& directory) {
  const Names names(experiment.network.topology);
  write_file(directory / "queues.csv", [&](std::ostream& out) {
    out << "time_ns,port,bytes\n";
    for (const QueueSample& sample : series.queues)
      out << sample.at_ns << ',' << names.port(sample.port) << ',' << sample.bytes << '\n';
  });
  write_file(directory / "rates.csv", [&](std::ostream& out) {
    out << "time_ns,flow,bits_per_s,allowed_bits_per_s\n";
    for (const RateSample& sample : series.rates) {
      out << sample.at_ns << ',' << sample.flow << ','
          << bits_per_s(sample.moved_bytes, experiment.results.interval_ns) << ',';
      if (sample.allowed_bits_per_s) out << *sample.allowed_bits_per_s;
      out << '\n';
    }
  });
  write_file(directory / "pauses.csv", [&](std::ostream& out) {
    out << "time_ns,port,pauses_sent,paused_ns\n";
    for (const PauseSample& sample : series.pauses)
      out << sample.at_ns << ',' << names.port(sample.port) << ',' << sample.pauses_sent << ','
          << sample.paused_ns << '\n';
  });
}

}  // namespace

void write_results(const Experiment& experiment, const Outcome& outcome,
                   const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw std::runtime_error(directory.string() + " cannot be made: " + error.message());
  const IdealTime ideal(experiment.network, experiment.nics);
  std::vector<TimeNs> ideal_ns;
  for (const Flow& flow : outcome.flows)
    ideal_ns.push_back(flow.bytes == 0 ? 0 : ideal.of(flow.from, flow.to, flow.bytes, flow.verb));
  write_file(directory / "flows.csv",
             [&](std::ostream& out) { write_flows(out, experiment, outcome, ideal_ns); });
  write_file(directory / "summary.json",
             [&](std::ostream& out) { out << summary_of(experiment, outcome, ideal_ns); });
  if (experiment.results.interval_ns != 0) write_series(experiment, outcome.series, directory);
  if (!experiment.results.plots) return;
  for (const auto& [name, svg] : plots_of(experiment, outcome, ideal_ns))
    write_file(directory / name, [&](std::ostream& out) { out << svg; });
}

}  // namespace rocemu::experiment
