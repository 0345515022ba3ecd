#include "emulator/experiment/run.h"

#include <algorithm>

namespace rocemu::experiment {

namespace {

constexpr uint64_t kEventsBetweenQuestions = 4096;

transport::WorkOpcode opcode_of(Verb verb) {
  using transport::WorkOpcode;
  switch (verb) {
    case Verb::write:
      return WorkOpcode::write;
    case Verb::write_imm:
      return WorkOpcode::write_imm;
    case Verb::send:
      return WorkOpcode::send;
    case Verb::read:
      return WorkOpcode::read;
  }
  return WorkOpcode::write;
}

// The sum of the rates at which the links of `hosts` carry frames.
uint64_t rates_of(const network::Topology& topology, const std::vector<uint32_t>& hosts) {
  const std::vector<uint32_t> nodes = topology.hosts();
  std::vector<uint64_t> rate_of_node(topology.nodes.size());
  for (const network::Topology::Link& link : topology.links)
    rate_of_node[link.a] = rate_of_node[link.b] = link.settings.rate_bits_per_s;
  uint64_t sum = 0;
  for (const uint32_t host : hosts) sum += rate_of_node[nodes[host]];
  return sum;
}

}  // namespace

Run::Run(const Experiment& experiment)
    : experiment_(experiment),
      cluster_(experiment.network, experiment.nics, experiment.seed),
      sampler_(experiment, cluster_) {
  Random seeds(experiment.seed);
  for (const WorkloadSettings& workload : experiment.workloads)
    workloads_.push_back(make_workload(workload, seeds.fork(),
                                       rates_of(experiment.network.topology, workload.hosts)));
}

TimeNs Run::next_begin() const {
  TimeNs next = kNever;
  for (const auto& workload : workloads_) next = std::min(next, workload->next());
  return next;
}

bool Run::is_over() const {
  if (now_ >= experiment_.duration_ns + experiment_.drain_ns) return true;
  if (open_ > 0) return false;
  const bool endless = flows_.size() > over_;
  return next_begin() == kNever && (!endless || now_ >= experiment_.duration_ns);
}

void Run::go(const std::function<bool(TimeNs, uint64_t)>& stop) {
  const TimeNs end = experiment_.duration_ns + experiment_.drain_ns;
  begin_workloads();
  for (uint64_t event = 1; !is_over(); ++event) {
    TimeNs next = std::min({cluster_.next_event(), next_begin(), sampler_.next()});
    // Endless flows alone end with the duration.
    if (now_ < experiment_.duration_ns) next = std::min(next, experiment_.duration_ns);
    if (!warm_) next = std::min(next, experiment_.results.warmup_ns);
    now_ = std::min(next, end);
    cluster_.advance(now_);
    while (!cluster_.told().empty()) {
      heard_.clear();
      heard_.swap(cluster_.told());
      for (const Told& told : heard_) hear(told);
    }
    if (!warm_ && now_ >= experiment_.results.warmup_ns) note_warm();
    if (now_ >= sampler_.next()) sampler_.sample(now_, flows_);
    begin_workloads();
    if (event % kEventsBetweenQuestions != 0 || !stop(now_, over_)) continue;
    partial_ = true;
    return;
  }
}

void Run::note_warm() {
  warm_ = true;
  for (uint32_t flow = 0; flow < flows_.size(); ++flow)
    flows_[flow].warm_bytes = cluster_.moved_bytes(flow);
}

void Run::begin_workloads() {
  for (size_t i = 0; i < workloads_.size(); ++i) {
    beginning_ = static_cast<uint8_t>(i);
    while (workloads_[i]->next() <= now_) workloads_[i]->begin(now_, *this);
  }
}

ConnectionId Run::connection_of(const FlowSpec& spec) {
  if (!spec.lasting && experiment_.nics.usual.connections == Connections::per_flow)
    return cluster_.connect(spec.from, spec.to);
  const auto [found, added] = lasting_.try_emplace({spec.from, spec.to});
  if (added) found->second = cluster_.connect(spec.from, spec.to);
  return found->second;
}

void Run::start(const FlowSpec& spec) {
  const auto number = static_cast<uint32_t>(flows_.size());
  Flow& flow = flows_.emplace_back();
  flow.start_ns = now_;
  flow.bytes = spec.bytes;
  flow.tag = spec.tag;
  flow.from = spec.from;
  flow.to = spec.to;
  flow.workload = beginning_;
  flow.verb = spec.verb;
  flow.lasting = spec.lasting || experiment_.nics.usual.connections == Connections::per_pair;
  flow.connection = connection_of(spec);
  if (spec.bytes != 0) ++open_;
  sampler_.begin_flow(number);
  post(number);
  if (spec.bytes == 0) post(number);
}

void Run::post(uint32_t number) {
  const Flow& flow = flows_[number];
  uint64_t rest = flow.bytes == 0 ? kEndlessMessageBytes : flow.bytes;
  while (rest > 0) {
    const uint64_t part = std::min(rest, kLargestPostBytes);
    rest -= part;
    // The immediate tells the receiver that all has come.
    const bool tells = rest == 0 || flow.verb != Verb::write_imm;
    cluster_.post(flow.connection,
                  {.flow = number,
                   .length_bytes = static_cast<uint32_t>(part),
                   .opcode = opcode_of(tells ? flow.verb : Verb::write),
                   .last = rest == 0},
                  now_);
  }
}

void Run::hear(const Told& told) {
  const Flow flow = flows_[told.flow];
  if (flow.state != FlowState::open) return;
  switch (told.what) {
    case Told::What::received:
      beginning_ = flow.workload;
      return workloads_[flow.workload]->on_received(now_, flow.tag, *this);
    case Told::What::completed:
      if (flow.bytes != 0) return end_flow(told.flow, FlowState::completed);
      return post(told.flow);
    case Told::What::failed:
      return end_flow(told.flow, FlowState::failed);
  }
}

void Run::end_flow(uint32_t number, FlowState state) {
  Flow& flow = flows_[number];
  flow.state = state;
  flow.end_ns = now_;
  flow.moved_bytes = cluster_.moved_bytes(number);
  if (!flow.lasting) cluster_.close(flow.connection);
  ++over_;
  if (flow.bytes != 0) --open_;
  beginning_ = flow.workload;
  workloads_[flow.workload]->on_over(now_, flow.tag, *this);
}

Outcome Run::outcome() {
  Outcome outcome;
  outcome.ended_ns = now_;
  outcome.partial = partial_;
  for (uint32_t number = 0; number < flows_.size(); ++number) {
    Flow& flow = flows_[number];
    if (flow.state != FlowState::open) continue;
    flow.end_ns = now_;
    flow.moved_bytes = cluster_.moved_bytes(number);
  }
  outcome.flows = std::move(flows_);
  outcome.series = std::move(sampler_.series());
  outcome.nics = cluster_.counters();
  outcome.frames_delivered = cluster_.counts().frames_delivered;
  outcome.cut_frames = cluster_.counts().cut_frames;
  outcome.ports = network::report(cluster_.network(), experiment_.network.topology, now_);
  return outcome;
}

}  // namespace rocemu::experiment
