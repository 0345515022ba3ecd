#include "tests/unit/cm/hosts.h"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "tests/unit/cm/seeded.h"

namespace rocemu::cm::test {
namespace {

constexpr TimeNs kDelay = 10'000;

class CountingNotifier final : public EventNotifier {
 public:
  explicit CountingNotifier(unsigned& rings) : rings_(rings) {}
  void notify() noexcept override { ++rings_; }

 private:
  unsigned& rings_;
};

wire::Gid ipv4_gid(uint8_t number) {
  wire::Gid gid;
  gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, number};
  return gid;
}

wire::Gid ipv6_gid(uint8_t number) {
  wire::Gid gid;
  gid.bytes = {0xfd, 0x52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  return gid;
}

// A host has two devices: N and 100 + N.
std::vector<Interface> devices_of(uint8_t number) {
  const auto device = [](uint8_t n) {
    return Interface{0x5200u + n, 5, {{ipv4_gid(n), 112}, {ipv6_gid(n), 64}}};
  };
  return {device(number), device(static_cast<uint8_t>(100 + number))};
}

std::vector<wire::Gid> neighbours_of(uint8_t number) {
  const auto other = static_cast<uint8_t>(3 - number);
  return {ipv4_gid(other), ipv6_gid(other)};
}

bool chance(Random& random, double probability) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53 < probability;
}

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(what);
}

}  // namespace

Host::Host(Hosts& hosts, uint8_t number, const RdmaLimits& limits)
    : cm(Interfaces(devices_of(number), neighbours_of(number)), seeded(number), limits),
      hosts_(hosts),
      number_(number) {
  channel = *cm.open_channel(kProgram, std::make_unique<CountingNotifier>(rings));
}

SocketAddress Host::ipv4(uint16_t port) const { return {false, ipv4_gid(number_), port, 0}; }
SocketAddress Host::ipv6(uint16_t port) const { return {true, ipv6_gid(number_), port, 0}; }

IdHandle Host::new_id(uint64_t uid, uint16_t port_space, uint8_t type) {
  return *cm.create_id(kProgram, channel, uid, port_space, type);
}

IdHandle Host::listener(uint64_t uid, const SocketAddress& address, uint32_t backlog,
                        uint16_t port_space, uint8_t type) {
  const IdHandle id = new_id(uid, port_space, type);
  must(cm.bind(kProgram, id, address) == 0, "bind");
  must(cm.listen(kProgram, id, backlog) == 0, "listen");
  return id;
}

IdHandle Host::resolved(uint64_t uid, const SocketAddress& to, uint16_t port_space, uint8_t type) {
  const IdHandle id = new_id(uid, port_space, type);
  must(cm.resolve_address(kProgram, id, std::nullopt, to) == 0, "resolve_address");
  expect(EventType::address_resolved);
  must(cm.resolve_route(kProgram, id) == 0, "resolve_route");
  expect(EventType::route_resolved);
  return id;
}

int Host::connect(IdHandle id, const ConnectionParameters& parameters) {
  return cm.connect(hosts_.now, kProgram, id, parameters);
}

int Host::accept(IdHandle id, uint64_t uid, const ConnectionParameters& parameters) {
  return cm.accept(hosts_.now, kProgram, id, uid, &parameters);
}

int Host::confirm(IdHandle id) { return cm.accept(hosts_.now, kProgram, id, 0, nullptr); }
int Host::disconnect(IdHandle id) { return cm.disconnect(hosts_.now, kProgram, id); }

void Host::destroy(IdHandle id) {
  must(cm.destroy_id(hosts_.now, kProgram, id).has_value(), "destroy_id");
}

const Connection* Host::connection(IdHandle id) const {
  const auto found = cm.query(kProgram, id);
  return found ? cm.connections().find((*found)->connection) : nullptr;
}

std::optional<RdmaEvent> Host::take() {
  const auto event = cm.next_event(kProgram, channel);
  if (!event) return std::nullopt;
  return *event;
}

RdmaEvent Host::expect(EventType type) {
  const auto event = take();
  must(event.has_value(), "an event is missing");
  if (event->type != type)
    throw std::runtime_error("event " + std::to_string(static_cast<int>(event->type)) +
                             " instead of " + std::to_string(static_cast<int>(type)));
  return *event;
}

Hosts::Hosts(uint64_t seed, const Faults& network, const RdmaLimits& limits)
    : a(*this, 1, limits), b(*this, 2, limits), faults(network), random_(seed) {}

void Hosts::collect(Host& from) {
  OutgoingMad mad;
  while (from.cm.next_mad(mad)) {
    ++mads;
    sent.push_back(mad.mad);
    const int copies = chance(random_, faults.duplication) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      if (chance(random_, faults.loss)) continue;
      TimeNs delay = kDelay;
      if (chance(random_, faults.reordering)) delay += random_.next() % (100 * kMs);
      in_flight_.emplace(now + delay, mad);
    }
  }
}

TimeNs Hosts::next_time() const {
  TimeNs next = std::min(a.cm.next_deadline(), b.cm.next_deadline());
  if (!in_flight_.empty()) next = std::min(next, in_flight_.begin()->first);
  return next;
}

void Hosts::step(TimeNs until) {
  now = std::max(now, std::min(until, next_time()));
  while (!in_flight_.empty() && in_flight_.begin()->first <= now) {
    const OutgoingMad mad = in_flight_.begin()->second;
    in_flight_.erase(in_flight_.begin());
    Host& to = b.cm.interfaces().find(mad.route.remote) ? b : a;
    const auto place = to.cm.interfaces().find(mad.route.remote);
    if (!place) continue;
    to.cm.on_mad(now, {place->device, mad.route.remote, mad.route.local}, mad.mad);
  }
  a.cm.on_timeout(now);
  b.cm.on_timeout(now);
  collect(a);
  collect(b);
}

void Hosts::run(TimeNs duration) {
  const TimeNs until = now + duration;
  collect(a);
  collect(b);
  while (next_time() <= until) step(until);
  now = until;
}

bool Hosts::settle(TimeNs limit) {
  const TimeNs until = now + limit;
  collect(a);
  collect(b);
  while (next_time() != kNever) {
    if (next_time() > until) return false;
    step(until);
  }
  return true;
}

bool Hosts::clean() const {
  const auto empty = [](const RdmaCm& cm) {
    return cm.ids().empty() && cm.connections().all().empty() && cm.group_count() == 0;
  };
  return empty(a.cm) && empty(b.cm) && in_flight_.empty();
}

ConnectionParameters with_data(const std::string& text, uint32_t qpn) {
  ConnectionParameters parameters;
  parameters.qpn = qpn;
  parameters.data.length = static_cast<uint8_t>(text.size());
  std::transform(text.begin(), text.end(), parameters.data.bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return parameters;
}

std::string text_of(const PrivateData& data) {
  std::string text;
  for (size_t i = 0; i < data.length && data.bytes[i] != std::byte{0}; ++i)
    text += static_cast<char>(data.bytes[i]);
  return text;
}

const ConnectionParameters& stream(const RdmaEvent& event) {
  return std::get<ConnectionParameters>(event.parameters);
}

const DatagramParameters& datagram(const RdmaEvent& event) {
  return std::get<DatagramParameters>(event.parameters);
}

Pair connected(Hosts& hosts) {
  Pair pair;
  pair.listener = hosts.b.listener(1, hosts.b.ipv4(7000));
  pair.client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  must(hosts.a.connect(pair.client, with_data("", 0x11)) == 0, "connect");
  hosts.run();
  pair.server = hosts.b.expect(EventType::connect_request).id;
  must(hosts.b.accept(pair.server, 3, with_data("", 0x22)) == 0, "accept");
  hosts.run();
  hosts.a.expect(EventType::connect_response);
  must(hosts.a.confirm(pair.client) == 0, "confirm");
  hosts.run();
  hosts.b.expect(EventType::established);
  return pair;
}

}  // namespace rocemu::cm::test
