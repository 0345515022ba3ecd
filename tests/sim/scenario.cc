#include "tests/sim/scenario.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/sim/packet_text.h"
#include "emulator/transport/requester/scoreboard.h"
#include "tests/sim/flow.h"
#include "tests/sim/shaken.h"
#include "tests/sim/trace_recorder.h"

namespace rocemu::sim_scenarios {

using transport::QpState;
using transport::TraceEvent;

namespace {

constexpr uint64_t kTimeLimitNs = 1'000'000'000'000;
constexpr uint64_t kFewestEvents = 10'000'000;

// So many events are more than any scenario needs that does come to an end. With go-back-N all that
// is left of a message may be sent again for each packet of it.
uint64_t event_limit(const Plan& plan) {
  uint64_t most_packets = 0;
  for (const Connection& connection : plan.connections)
    for (const Direction& direction : connection.direction)
      for (const Op& op : direction.ops)
        most_packets = std::max<uint64_t>(most_packets, op.length_bytes / connection.mtu_bytes + 1);
  return kFewestEvents + most_packets * most_packets;
}

class Scenario {
 public:
  Scenario(uint64_t seed, bool trace, bool is_recorded)
      : plan_(draw_plan(seed)),
        shake_(draw_shake(seed)),
        lends_(plan_.lends && may_lend(shake_)),
        fabric_(plan_.fabric_seed) {
    if (is_recorded)
      recorder_ =
          std::make_unique<TraceRecorder>(fabric_, "sim_scenarios --seed " + std::to_string(seed));
    for (const sim::NodeOptions& options : plan_.nodes) add_node(options);
    counters_.resize(plan_.nodes.size());
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      sim::EndpointNode& node = *nodes_[i];
      counters_[i].address = node.memory().allocate(8);
      counters_[i].key =
          node.memory().register_region(kPd, counters_[i].address, 8, transport::kRemoteAtomic);
      for (size_t j = 0; j < plan_.nodes.size(); ++j)
        fabric_.set_link(node, *nodes_[j], plan_.links[i * plan_.nodes.size() + j]);
    }
    for (size_t i = 0; i < plan_.connections.size(); ++i) connect(i);
    if (lends_) lend();
    for (sim::EndpointNode* node : nodes_) node->after_poll = [this, node] { after_poll(*node); };
    fabric_.observer = [this, trace](const sim::FrameRecord& record) {
      if (record.kind == sim::FrameRecord::Kind::sent) ++frames_;
      const auto icrc = lends_ ? transport::Icrc::owed : transport::Icrc::there;
      if (trace) std::printf("%s\n", describe(record, icrc).c_str());
      if (recorder_) recorder_->on_frame(record);
      return true;
    };
    if (trace) trace_completions();
    if (recorder_)
      for (const auto& party : parties_) record_queues(*party);
  }

  trace::Trace recorded() { return recorder_->take(); }

  Outcome run() {
    for (const auto& flow : flows_) flow->start();
    finish("the requests");
    if (verdict_.ok()) check_calm();
    for (const auto& flow : flows_)
      if (verdict_.ok()) flow->check_end();
    if (verdict_.ok()) check_counters();
    for (const auto& party : parties_) {
      if (party->gone) continue;
      party->node.endpoint().modify(party->qpn, QpState::error, party->attributes);
      party->node.wake();
    }
    if (verdict_.ok()) finish("the flush");
    for (const auto& flow : flows_)
      if (verdict_.ok()) flow->check_flushed();
    if (!verdict_.ok()) note_counters();
    for (const auto& party : parties_) party->node.endpoint().destroy(party->qpn);
    for (sim::EndpointNode* node : nodes_) {
      verdict_.check(node->memory().guards_intact(), "written behind a buffer");
      verdict_.check(node->endpoint().qp_count() == 0, "a QP is left");
    }

    Outcome outcome;
    outcome.failure = verdict_.text() + qp_counters_;
    outcome.frames = frames_;
    outcome.virtual_ns = fabric_.now_ns();
    for (const auto& party : parties_) outcome.requests += party->send_queue.posted();
    for (const auto& flow : flows_) outcome.failed_connection |= flow->failed();
    return outcome;
  }

 private:
  void add_node(sim::NodeOptions options) {
    const auto host = static_cast<uint32_t>(nodes_.size());
    ShakenHost& shaken = *shaken_.emplace_back(std::make_unique<ShakenHost>(shake_, host));
    options.runs = options.runs && !shaken.looks_at_frames();
    options.lends = lends_;
    sim::EndpointNode& node = fabric_.add_node<sim::EndpointNode>(options, shaken.memory());
    shaken.delay_arrivals(node);
    nodes_.push_back(&node);
    if (recorder_) recorder_->add_node(node);
  }

  // From now on memory is lent, until its program has it back by an error. As with EngineDevice a
  // program sees no completion within a turn, in whose burst frames with its memory may be.
  void lend() {
    shown_after_turn_.resize(nodes_.size());
    for (sim::EndpointNode* node : nodes_) node->memory().lend();
    for (const auto& party : parties_) {
      for (sim::SimCompletionQueue* cq : {&party->send_cq, &party->receive_cq})
        cq->on_push = [this, &node = party->node,
                       show = cq->on_push](const transport::Completion& completion) {
          shown_after_turn_[node.index()].push_back([show, completion] { show(completion); });
          if (!node.in_turn()) show_completions(node);
        };
    }
  }

  void show_completions(sim::EndpointNode& node) {
    if (node.endpoint().take_given_back()) fabric_.take_lent();
    for (const auto& show : std::exchange(shown_after_turn_[node.index()], {})) show();
  }

  // Puts what shakes its queues before those of the party.
  void shake_queues(Party& party) {
    ShakenHost& shaken = *shaken_[party.node.index()];
    if (const auto dice = shaken.dice_for(shake::Behaviour::doorbells))
      party.sends = std::make_unique<ShakenSends>(party.send_queue, fabric_, *dice, [&party] {
        if (!party.gone) party.node.ring(party.qpn);
      });
    if (const auto dice = shaken.dice_for(shake::Behaviour::rnr))
      party.receives = std::make_unique<ShakenReceives>(party.receive_queue, *dice,
                                                        [&party] { return party.in_error(); });
  }

  void connect(size_t index) {
    const Connection& connection = plan_.connections[index];
    Party* pair[2];
    for (size_t i = 0; i < 2; ++i) {
      parties_.push_back(std::make_unique<Party>(*nodes_[connection.side[i].node],
                                                 connection.direction[i].send_depth));
      pair[i] = parties_.back().get();
      shake_queues(*pair[i]);
      pair[i]->qpn = *pair[i]->node.endpoint().create_rc(
          {kPd, pair[i]->sends ? pair[i]->sends.get() : &pair[i]->send_queue,
           pair[i]->receives ? pair[i]->receives.get() : &pair[i]->receive_queue, &pair[i]->send_cq,
           &pair[i]->receive_cq});
    }
    for (size_t i = 0; i < 2; ++i) {
      set_up(*pair[i], *pair[1 - i], connection, i);
      if (recorder_)
        recorder_->add_qp(pair[i]->node.index(), pair[i]->qpn, pair[1 - i]->node.index(),
                          pair[1 - i]->qpn, pair[i]->attributes);
      flows_.push_back(std::make_unique<Flow>(
          plan_, connection, static_cast<uint32_t>(i), *pair[i], *pair[1 - i],
          counters_[connection.side[1 - i].node], fabric_, verdict_,
          "connection " + std::to_string(index) + " side " + std::to_string(i)));
    }
  }

  void set_up(Party& party, const Party& peer, const Connection& connection, size_t index) {
    const QpSide& side = connection.side[index];
    const QpSide& other = connection.side[1 - index];
    transport::QpAttributes& attributes = party.attributes;
    attributes.path = party.node.path_to(peer.node);
    attributes.path_mtu_bytes = connection.mtu_bytes;
    attributes.remote_qpn = peer.qpn;
    attributes.send_psn = wire::Psn(side.first_psn);
    attributes.receive_psn = wire::Psn(other.first_psn);
    attributes.access = transport::kRemoteWrite | transport::kRemoteRead |
                        transport::kRemoteAtomic | transport::kFlushGlobal;
    attributes.max_rd_atomic = side.max_rd_atomic;
    attributes.max_dest_rd_atomic = other.max_rd_atomic;
    attributes.min_rnr_timer = side.min_rnr_timer;
    attributes.timeout = side.timeout;
    attributes.retry_count = side.retry_count;
    attributes.rnr_retry = side.rnr_retry;
    for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      party.node.endpoint().modify(party.qpn, state, attributes);

    if (side.kill_at_ns)
      fabric_.at(*side.kill_at_ns, [&party] {
        if (party.gone) return;
        party.killed = true;
        party.node.endpoint().modify(party.qpn, QpState::error, party.attributes);
        party.node.wake();
      });
    if (side.leave_at_ns)
      fabric_.at(*side.leave_at_ns, [this, &party, leave = side.leave] { go(party, leave); });
    if (side.pause_at_ns) {
      fabric_.at(*side.pause_at_ns, [&party] { change(party, QpState::send_queue_drain); });
      fabric_.at(*side.pause_at_ns + side.resume_after_ns,
                 [&party] { change(party, QpState::ready_to_send); });
    }
  }

  void go(Party& party, Leave leave) {
    if (lends_) fabric_.take_lent();
    party.gone = true;
    if (leave == Leave::reset) {
      party.node.endpoint().modify(party.qpn, QpState::reset, party.attributes);
    } else {
      party.node.endpoint().destroy(party.qpn);
    }
    for (const auto& flow : flows_) flow->on_leave(party);
    party.node.wake();
  }

  static void change(Party& party, QpState state) {
    if (party.in_error() || party.gone) return;
    party.node.endpoint().modify(party.qpn, state, party.attributes);
    party.node.wake();
  }

  void after_poll(sim::EndpointNode& node) {
    if (lends_) show_completions(node);
    for (const auto& flow : flows_) flow->post_due();
    for (size_t i = 0; i < parties_.size(); ++i) check_bounds(i);
  }

  void check_bounds(size_t index) {
    Party& party = *parties_[index];
    const QpSide& side = plan_.connections[index / 2].side[index % 2];
    const QpSide& other = plan_.connections[index / 2].side[1 - index % 2];
    const transport::QpLoad load = party.node.endpoint().load(party.qpn);
    const transport::TransportLimits& limits = party.node.endpoint().limits();
    const bool selective = limits.recovery == transport::Recovery::selective_repeat;
    // Selective repeat bounds how many PSNs there are from the oldest that is missing on.
    const uint32_t window = selective ? std::clamp(std::bit_ceil(4 * limits.window_packets), 64u,
                                                   transport::Scoreboard::kMaxPsns)
                                      : limits.window_packets;
    const uint32_t longest_read = kLongestMessageBytes / plan_.connections[index / 2].mtu_bytes;
    verdict_.check(load.requests <= window + 1, "more requests taken than the window bounds");
    verdict_.check(load.unacknowledged_psns <= window - 1 + longest_read, "the window is exceeded");
    verdict_.check(load.rd_atomics <= side.max_rd_atomic, "more READs and atomics than allowed");
    verdict_.check(load.queued_responses <= 2u * other.max_rd_atomic + (selective ? 19 : 3),
                   "more answers wait than READs and atomics account for");
    verdict_.check(load.kept_atomic_results <= std::max<uint32_t>(other.max_rd_atomic, 1),
                   "more atomic results kept than needed");
  }

  void finish(const char* what) {
    // In slices, so that a failure ends the run.
    const uint64_t limit = event_limit(plan_);
    for (uint64_t events = 0; events < limit && verdict_.ok(); events += 1000)
      if (fabric_.run(kTimeLimitNs, 1000)) return;
    verdict_.check(false, (std::string("did not come to an end: ") + what).c_str());
  }

  // Without faults and errors nothing is sent twice.
  void check_calm() {
    if (!plan_.calm) return;
    uint64_t rnr = 0;
    bool failed = false;
    for (const auto& party : parties_) failed |= party->in_error() || party->gone;
    for (sim::EndpointNode* node : nodes_)
      rnr += node->endpoint().counters()[TraceEvent::rnr_nak_sent];
    if (rnr > 0 || failed) return;
    uint64_t early = 0;
    for (sim::EndpointNode* node : nodes_)
      early += node->endpoint().counters()[TraceEvent::early_retransmission];
    for (sim::EndpointNode* node : nodes_) {
      const transport::Counters& counters = node->endpoint().counters();
      verdict_.check(counters[TraceEvent::ack_timeout] == 0, "an ACK timeout on a perfect network");
      verdict_.check(
          counters[TraceEvent::implied_nak] + counters[TraceEvent::sequence_nak_sent] == 0,
          "a NAK on a perfect network");
      // A host that handles few frames at a time, and not often, is late by itself; that is rare.
      if (early > 0) continue;
      verdict_.check(counters[TraceEvent::retransmitted] == 0, "sent twice on a perfect network");
      verdict_.check(counters[TraceEvent::duplicate_request] == 0,
                     "a duplicate on a perfect network");
    }
  }

  // For the report of a failure: what each QP has been through.
  void note_counters() {
    for (const auto& party : parties_)
      qp_counters_ += "\n  node " + std::to_string(party->node.index()) + " qp " +
                      std::to_string(party->qpn.value) + ": " +
                      sim::describe(party->node.endpoint().counters(party->qpn));
  }

  void check_counters() {
    for (size_t i = 0; i < counters_.size(); ++i) {
      SharedCounter& counter = counters_[i];
      uint64_t value;
      std::memcpy(&value, nodes_[i]->memory().at(counter.address, 8).data(), sizeof value);
      std::ranges::sort(counter.seen);
      verdict_.check(std::ranges::adjacent_find(counter.seen) == counter.seen.end(),
                     "two fetch_adds saw the same value");
      verdict_.check(counter.seen.empty() || counter.seen.back() < value,
                     "a fetch_add saw more than the counter has");
      verdict_.check(value <= counter.posted && value >= counter.seen.size(),
                     "a fetch_add was executed twice or not at all");
    }
  }

  void record_queues(Party& party) {
    const uint32_t node = party.node.index();
    const auto on_post = [this, node, qpn = party.qpn](const auto& request) {
      recorder_->on_post(node, qpn, request);
    };
    party.send_queue.on_post = on_post;
    party.receive_queue.on_post = on_post;
    for (const bool is_receive : {false, true}) {
      sim::SimCompletionQueue& cq = is_receive ? party.receive_cq : party.send_cq;
      cq.on_push = [this, node, is_receive,
                    inner = cq.on_push](const transport::Completion& completion) {
        recorder_->on_completion(node, is_receive, completion);
        inner(completion);
      };
    }
  }

  void trace_completions() {
    for (const auto& party : parties_) {
      for (const bool receive : {false, true}) {
        sim::SimCompletionQueue& cq = receive ? party->receive_cq : party->send_cq;
        cq.on_push = [this, inner = cq.on_push, receive,
                      node = party->node.index()](const transport::Completion& completion) {
          std::printf("%14.3f us  %u       %s completion qp %u wr_id %llu status %d\n",
                      static_cast<double>(fabric_.now_ns()) / 1000, node,
                      receive ? "receive" : "send", completion.qpn.value,
                      static_cast<unsigned long long>(completion.wr_id),
                      static_cast<int>(completion.status));
          inner(completion);
        };
      }
    }
  }

  Plan plan_;
  shake::Settings shake_;
  bool lends_;
  std::vector<std::vector<std::function<void()>>> shown_after_turn_;  // by node; empty: not lends_
  std::vector<std::unique_ptr<ShakenHost>> shaken_;                   // by node
  sim::Fabric fabric_;
  std::vector<sim::EndpointNode*> nodes_;
  std::unique_ptr<TraceRecorder> recorder_;  // null: nobody wants to see it
  Verdict verdict_;
  std::vector<SharedCounter> counters_;  // by node
  std::vector<std::unique_ptr<Party>> parties_;
  std::vector<std::unique_ptr<Flow>> flows_;
  uint64_t frames_ = 0;
  std::string qp_counters_;
};

}  // namespace

Outcome run_scenario(uint64_t seed, bool print, trace::Trace* record) {
  Scenario scenario(seed, print, record != nullptr);
  Outcome outcome = scenario.run();
  if (record != nullptr) *record = scenario.recorded();
  return outcome;
}

}  // namespace rocemu::sim_scenarios
