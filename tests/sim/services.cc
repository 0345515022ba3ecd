// Random scenarios of the services beside plain reliable connections: UD, UC, XRC, and RC and UD
// with shared receive queues, on a network that loses, delays and reorders, in virtual time.
//   sim_services [--scenarios N] [--seed S]
// Scenario i of a run has seed S + i. Ends with 1 at the first failure.
//
// Every message names itself, so that whatever is received can be held against what was sent:
// never other bytes, never twice, over connections never out of order, over reliable ones nothing
// left out. On a perfect network everything arrives. A QP that goes away leaves its SRQ to others.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "tests/sim/shaken.h"
#include "tests/sim/verdict.h"

namespace rocemu::sim_scenarios {
namespace {

using transport::Completion;
using transport::QpState;
using transport::Service;
using transport::WcStatus;

constexpr transport::PdHandle kPd = 3;
constexpr uint32_t kQkey = 0x1111;
constexpr uint32_t kSrqNumber = 5;
constexpr uint32_t kGrhBytes = 40;
constexpr uint32_t kLongestBytes = 12'000;
constexpr uint64_t kUs = 1000;
constexpr uint64_t kTimeLimitNs = 1'000'000'000'000;
constexpr uint64_t kEventLimit = 5'000'000;

std::vector<std::byte> message(uint64_t name, uint32_t length_bytes) {
  std::vector<std::byte> bytes(length_bytes);
  Random random(name);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  std::memcpy(bytes.data(), &name, sizeof name);
  return bytes;
}

// Receives and what lies where.
struct Receives {
  sim::SimReceiveQueue queue;
  std::map<uint64_t, uint64_t> address;  // by wr_id: posted and not completed
};

struct Host final : transport::Addresses, transport::XrcDomain {
  explicit Host(sim::EndpointNode& on) : node(on) {}
  const transport::Path* find(transport::PdHandle, uint32_t handle) const noexcept override {
    return handle < paths.size() ? &paths[handle] : nullptr;
  }
  bool is_local(const wire::Gid& gid) const noexcept override { return gid == node.gid(); }
  bool find(wire::Qpn srq, transport::SharedReceiver& receiver) const noexcept override {
    receiver = {kPd, const_cast<sim::SimReceiveQueue*>(&shared.queue),
                const_cast<sim::SimCompletionQueue*>(&receive_cq)};
    return srq.value == kSrqNumber;
  }

  sim::EndpointNode& node;
  std::vector<transport::Path> paths;  // address handle i: to host i
  Receives shared;                     // the host's SRQ
  sim::SimCompletionQueue receive_cq;  // of all its QPs
  uint64_t next_wr_id = 1;
};

// Messages from one QP to another.
struct Flow {
  Service sends = Service::uc;
  Service receives = Service::uc;
  bool uses_srq = false;
  Host* from = nullptr;
  Host* to = nullptr;
  wire::Qpn sender{};
  wire::Qpn receiver{};
  std::vector<uint32_t> lengths;
  size_t posted = 0;
  sim::SimSendQueue send_queue{8};
  sim::SimCompletionQueue send_cq;
  sim::SimReceiveQueue unused;
  sim::SimSendQueue unused_sends{1};
  sim::SimCompletionQueue unused_cq;
  Receives own;
  std::set<uint64_t> received;  // indices
  size_t completed = 0;
  size_t succeeded = 0;
  bool broken = false;  // a QP is gone or has failed
  transport::QpAttributes attributes[2];

  bool reliable() const { return sends == Service::rc || sends == Service::xrc_send; }
  Receives& takes_from() { return uses_srq ? to->shared : own; }
};

class Scenario {
 public:
  explicit Scenario(uint64_t seed)
      : random_(seed), shake_(draw_shake(seed)), fabric_(random_.fork()) {
    calm_ = percent(40);
    const size_t hosts = 2 + random_.below(2);
    const bool ipv6 = percent(30);
    for (size_t i = 0; i < hosts; ++i) add_host(ipv6);
    for (size_t i = 0; i < hosts; ++i)
      for (size_t j = 0; j < hosts; ++j) {
        hosts_[i]->paths.push_back(hosts_[i]->node.path_to(hosts_[j]->node));
        fabric_.set_link(hosts_[i]->node, hosts_[j]->node, draw_link());
      }
    const size_t flows = 1 + random_.below(5);
    for (size_t i = 0; i < flows; ++i) add_flow();
    for (const auto& flow : flows_) post_receives(*flow);
    for (const auto& host : hosts_) host->node.after_poll = [this] { post_due(); };
  }

  std::string run() {
    fabric_.at(0, [this] { post_due(); });
    for (uint64_t events = 0; events < kEventLimit && verdict_.ok(); events += 1000)
      if (fabric_.run(kTimeLimitNs, 1000)) break;
    for (const auto& flow : flows_)
      if (verdict_.ok()) check_end(*flow);
    for (const auto& host : hosts_)
      verdict_.check(host->node.memory().guards_intact(), "written behind a buffer");
    return verdict_.text();
  }

 private:
  bool percent(uint32_t n) { return random_.chance(n * 10'000); }

  void add_host(bool ipv6) {
    sim::NodeOptions options;
    options.ipv6 = ipv6;
    options.poll_interval_ns = random_.between(1, 3 * kUs);
    options.rx_burst = static_cast<unsigned>(random_.between(1, 64));
    options.tx_burst = static_cast<unsigned>(random_.between(1, 64));
    options.no_buffer_ppm = percent(20) ? 100'000 : 0;
    const auto index = static_cast<uint32_t>(hosts_.size());
    ShakenHost& shaken = *shaken_.emplace_back(std::make_unique<ShakenHost>(shake_, index));
    auto& node = fabric_.add_node<sim::EndpointNode>(options, shaken.memory());
    shaken.delay_arrivals(node);
    hosts_.push_back(std::make_unique<Host>(node));
    Host& host = *hosts_.back();
    host.receive_cq.on_push = [this, &host](const Completion& completion) {
      on_received(host, completion);
    };
  }

  impairment::Impairments draw_link() {
    impairment::Impairments link;
    link.delay_ns = random_.below(10 * kUs);
    if (calm_) return link;
    link.loss_ppm = static_cast<uint32_t>(random_.below(50'000));
    if (percent(30)) link.corrupt_ppm = static_cast<uint32_t>(random_.below(20'000));
    if (percent(40)) {
      link.reorder_ppm = static_cast<uint32_t>(random_.below(50'000));
      link.reorder_delay_ns = random_.below(50 * kUs);
    }
    if (percent(30)) {
      link.duplicate_ppm = static_cast<uint32_t>(random_.below(50'000));
      duplicates_ = true;
    }
    return link;
  }

  void add_flow() {
    constexpr std::pair<Service, Service> kServices[] = {{Service::uc, Service::uc},
                                                         {Service::ud, Service::ud},
                                                         {Service::rc, Service::rc},
                                                         {Service::xrc_send, Service::xrc_receive}};
    auto flow = std::make_unique<Flow>();
    std::tie(flow->sends, flow->receives) = kServices[random_.below(std::size(kServices))];
    flow->from = hosts_[random_.below(hosts_.size())].get();
    flow->to = hosts_[random_.below(hosts_.size())].get();
    flow->uses_srq = flow->sends == Service::xrc_send || percent(50);
    const uint32_t mtu = 256u << random_.below(5);
    const uint32_t longest = flow->sends == Service::ud ? mtu : kLongestBytes;
    for (uint64_t i = random_.between(1, 40); i > 0; --i)
      flow->lengths.push_back(static_cast<uint32_t>(
          random_.between(8, percent(80) ? std::min(longest, 3 * mtu) : longest)));
    connect(*flow, mtu);
    if (percent(15)) break_at(*flow, random_.below(100 * kUs));
    flow->send_cq.on_push = [this, &flow = *flow](const Completion& completion) {
      on_sent(flow, completion);
    };
    flows_.push_back(std::move(flow));
  }

  void connect(Flow& flow, uint32_t mtu) {
    transport::QpResources sender{kPd, &flow.send_queue, &flow.unused, &flow.send_cq,
                                  &flow.unused_cq};
    sender.send_only = flow.sends == Service::xrc_send;
    sender.addresses = flow.from;
    transport::QpResources receiver{kPd, &flow.unused_sends, &flow.takes_from().queue,
                                    &flow.unused_cq, &flow.to->receive_cq};
    receiver.receives_are_shared = flow.uses_srq;
    receiver.addresses = flow.to;
    if (flow.receives == Service::xrc_receive) receiver.xrc_domain = flow.to;
    flow.sender = *flow.from->node.endpoint().create(flow.sends, sender);
    flow.receiver = *flow.to->node.endpoint().create(flow.receives, receiver);
    by_receiver_[{flow.to, flow.receiver.value}] = &flow;

    for (int i = 0; i < 2; ++i) {
      Host& host = i == 0 ? *flow.from : *flow.to;
      Host& peer = i == 0 ? *flow.to : *flow.from;
      transport::QpAttributes& attributes = flow.attributes[i];
      attributes.path = host.node.path_to(peer.node);
      attributes.path_mtu_bytes = mtu;
      attributes.remote_qpn = i == 0 ? flow.receiver : flow.sender;
      attributes.send_psn = attributes.receive_psn = wire::Psn(0xffffff - 20);
      attributes.qkey = kQkey;
      attributes.min_rnr_timer = 1;
      attributes.timeout = 8;
      attributes.retry_count = 7;
      attributes.rnr_retry = 7;
      attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1;
      const wire::Qpn qpn = i == 0 ? flow.sender : flow.receiver;
      for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
        host.node.endpoint().modify(qpn, state, attributes);
    }
  }

  // One end goes away with work under way.
  void break_at(Flow& flow, uint64_t at_ns) {
    const uint64_t way = random_.below(3);
    fabric_.at(at_ns, [&flow, way] {
      flow.broken = true;
      if (way == 0) {
        flow.from->node.endpoint().modify(flow.sender, QpState::error, flow.attributes[0]);
      } else if (way == 1) {
        flow.to->node.endpoint().modify(flow.receiver, QpState::error, flow.attributes[1]);
      } else {
        flow.to->node.endpoint().destroy(flow.receiver);
      }
      flow.from->node.wake();
      flow.to->node.wake();
    });
  }

  // Enough of them for every message, on a good network before the first one. An SRQ has more: a
  // QP that goes away keeps what it had taken, and a datagram may come twice.
  void post_receives(Flow& flow) {
    const size_t count = flow.lengths.size() * (flow.uses_srq ? 2 : 1) + 4;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t at_ns = calm_ || percent(70) ? 0 : random_.below(200 * kUs);
      Receives& receives = flow.takes_from();
      fabric_.at(at_ns, [&flow, &receives] {
        Host& host = *flow.to;
        const uint32_t bytes = kLongestBytes + kGrhBytes;
        const uint64_t address = host.node.memory().allocate(bytes);
        const uint32_t key =
            host.node.memory().register_region(kPd, address, bytes, transport::kLocalWrite);
        const uint64_t wr_id = host.next_wr_id++;
        receives.address[wr_id] = address;
        receives.queue.post({.wr_id = wr_id,
                             .sges = {{address, 30, wire::LKey{key}},
                                      {address + 30, bytes - 30, wire::LKey{key}}}});
      });
    }
  }

  void post_due() {
    for (size_t f = 0; f < flows_.size(); ++f) {
      Flow& flow = *flows_[f];
      while (flow.posted < flow.lengths.size() && !flow.send_queue.full()) {
        const uint32_t bytes = flow.lengths[flow.posted];
        sim::SimMemory& memory = flow.from->node.memory();
        const uint64_t address = memory.allocate(bytes);
        std::ranges::copy(message(name_of(f, flow.posted), bytes),
                          memory.at(address, bytes).begin());
        const uint32_t key = memory.register_region(kPd, address, bytes, 0);
        sim::SendRequest request{.wr_id = flow.posted++,
                                 .sges = {{address, bytes, wire::LKey{key}}}};
        request.address_handle = flow.to->node.index();
        request.remote_qpn = flow.receiver;
        request.remote_qkey = kQkey;
        request.remote_srq = wire::Qpn{kSrqNumber};
        flow.send_queue.post(request);
        flow.from->node.ring(flow.sender);
      }
    }
  }

  static uint64_t name_of(size_t flow, size_t index) { return uint64_t{flow + 1} << 32 | index; }

  void on_sent(Flow& flow, const Completion& completion) {
    verdict_.check(completion.wr_id == flow.completed++, "send completions out of order");
    if (completion.status == WcStatus::success) {
      verdict_.check(flow.succeeded + 1 == flow.completed, "a success behind a failure");
      ++flow.succeeded;
      return;
    }
    verdict_.check(flow.broken || flow.reliable(), "an unreliable send failed");
    flow.broken = true;
  }

  void on_received(Host& host, const Completion& completion) {
    const auto found = by_receiver_.find({&host, completion.qpn.value});
    if (!verdict_.check(found != by_receiver_.end(), "a completion for an unknown QP")) return;
    Flow& flow = *found->second;
    Receives& receives = flow.takes_from();
    const auto posted = receives.address.find(completion.wr_id);
    if (!verdict_.check(posted != receives.address.end(), "a receive completed twice")) return;
    const uint64_t address = posted->second;
    receives.address.erase(posted);
    if (completion.status != WcStatus::success) {
      // A message whose end is lost costs an SRQ a receive.
      const bool torn = completion.status == WcStatus::remote_invalid_request_error &&
                        flow.sends == Service::uc && flow.uses_srq && !calm_;
      verdict_.check(flow.broken || torn, "a receive failed without cause");
      return;
    }
    check_message(flow, completion, address);
  }

  void check_message(Flow& flow, const Completion& completion, uint64_t address) {
    const bool datagram = flow.sends == Service::ud;
    const uint32_t grh = datagram ? kGrhBytes : 0;
    if (!verdict_.check(completion.byte_length >= grh + 8, "too short for a message")) return;
    const auto bytes = flow.to->node.memory().at(address + grh, completion.byte_length - grh);
    uint64_t name;
    std::memcpy(&name, bytes.data(), sizeof name);
    const uint64_t index = name & 0xffffffff;
    const size_t number = (name >> 32) - 1;
    if (!verdict_.check(
            number < flows_.size() && flows_[number].get() == &flow && index < flow.posted,
            "a message of somebody else"))
      return;
    verdict_.check(std::ranges::equal(bytes, message(name, flow.lengths[index])),
                   "received with other bytes");
    // The network may repeat a datagram, and nothing tells.
    const bool news = flow.received.insert(index).second;
    verdict_.check(news || (datagram && duplicates_), "received twice");
    if (!datagram) verdict_.check(*flow.received.rbegin() == index, "received out of order");
    if (flow.reliable())
      verdict_.check(flow.received.size() == index + 1, "a reliable message was left out");
    if (datagram)
      verdict_.check(completion.has_grh && completion.source_qp == flow.sender, "a wrong sender");
  }

  void check_end(const Flow& flow) {
    if (flow.broken) return;
    verdict_.check(flow.completed == flow.lengths.size(), "a send was never completed");
    if (flow.reliable() || calm_)
      verdict_.check(flow.received.size() == flow.lengths.size(), "a message did not arrive");
  }
  Random random_;
  shake::Settings shake_;
  std::vector<std::unique_ptr<ShakenHost>> shaken_;  // by host
  sim::Fabric fabric_;
  Verdict verdict_;
  bool calm_ = false;
  bool duplicates_ = false;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::map<std::pair<Host*, uint32_t>, Flow*> by_receiver_;
};

}  // namespace
}  // namespace rocemu::sim_scenarios

int main(int argc, char** argv) {
  uint64_t scenarios = 1;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    (option == "--seed" ? seed : scenarios) = std::strtoull(argv[i + 1], nullptr, 0);
  }
  for (uint64_t i = 0; i < scenarios; ++i) {
    const std::string failure = rocemu::sim_scenarios::Scenario(seed + i).run();
    if (failure.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed + i), failure.c_str());
    return 1;
  }
  std::printf("%llu scenarios\n", static_cast<unsigned long long>(scenarios));
  return 0;
}
