// The members of Network; network.h includes this, and nobody else does.
#pragma once

#include "base/net/headers.h"
#include "base/net/path_telemetry.h"

namespace rocemu::network {

template <class Frames, class Owner>
Network<Frames, Owner>::Network(const Topology& topology, const NetworkSettings& settings,
                                Owner& owner, size_t max_packets, TimeNs start)
    : settings_(settings),
      owner_(owner),
      max_packets_(max_packets),
      routes_(topology),
      random_(settings.seed),
      links_down_(topology.links.size()) {
  if (max_packets != std::numeric_limits<size_t>::max()) pool_.reserve(max_packets);
  add_ports(topology);
  add_switches(topology);
  for (uint32_t i = 0; i < settings_.failures.size(); ++i)
    schedule(start + settings_.failures[i].down_ns, EventKind::down, i);
}

template <class Frames, class Owner>
Network<Frames, Owner>::~Network() {
  const auto empty_out = [this](Fifo& fifo) {
    while (!fifo.empty()) {
      const uint32_t id = pool_.pop(fifo);
      const bool has_frame = pool_[id].destination != kControl;
      Frame frame = pool_.give_back(id);
      if (has_frame) Frames::release(frame);
    }
  };
  for (Port& port : ports_) {
    empty_out(port.cable.under_way);
    for (Fifo& fifo : port.queues.fifos) empty_out(fifo);
  }
}

template <class Frames, class Owner>
void Network<Frames, Owner>::add_ports(const Topology& topology) {
  ports_.resize(2 * topology.links.size());
  for (uint32_t i = 0; i < ports_.size(); ++i) {
    const Topology::Link& link = topology.links[link_of(i)];
    Port& port = ports_[i];
    port.node = i % 2 == 0 ? link.a : link.b;
    port.far_node = i % 2 == 0 ? link.b : link.a;
    port.cable.line = Line(link.settings.rate_bits_per_s);
    port.cable.delay_ns = link.settings.delay_ns;
    port.cable.loss_ppm = link.settings.loss_ppm;
    port.settings = &settings_.of_node(port.node);
    if (topology.nodes[port.node].is_switch)
      port.queues.marker = EcnMarker(port.settings->ecn, link.settings.rate_bits_per_s);
  }
}

template <class Frames, class Owner>
void Network<Frames, Owner>::add_switches(const Topology& topology) {
  host_of_node_.assign(topology.nodes.size(), kNone);
  switches_.resize(topology.nodes.size());
  for (const uint32_t node : topology.hosts()) {
    host_of_node_[node] = static_cast<uint32_t>(host_ports_.size());
    host_ports_.push_back(routes_.ports_at(node).front());
  }
  for (uint32_t node = 0; node < topology.nodes.size(); ++node) {
    const auto ports = routes_.ports_at(node);
    for (uint32_t i = 0; i < ports.size(); ++i) ports_[ports[i]].number = i;
    if (!topology.nodes[node].is_switch) continue;
    const SwitchSettings& settings = settings_.of_node(node);
    switches_[node] = std::make_unique<Switch>(
        Switch{SharedBuffer(settings, headroom_at(topology, settings, ports)),
               PathChooser(settings.paths, random_.fork())});
  }
}

template <class Frames, class Owner>
std::span<const std::byte> Network<Frames, Owner>::header_bytes(const Frame& frame) noexcept {
  if constexpr (requires { Frames::readable_bytes(frame); }) {
    return {Frames::bytes(frame), std::min(Frames::readable_bytes(frame), kMaxHeaderBytes)};
  } else {
    return {Frames::bytes(frame), std::min<size_t>(Frames::length_bytes(frame), kMaxHeaderBytes)};
  }
}

// Returns the bytes behind the UDP datagram; nullptr when they cannot be had.
template <class Frames, class Owner>
std::byte* Network<Frames, Owner>::surplus_of(Packet<Frame>& packet) noexcept {
  if constexpr (requires { Frames::writable_at(packet.frame, size_t{}, size_t{}); }) {
    return Frames::writable_at(packet.frame, packet.surplus_offset, packet.surplus_bytes);
  } else {
    if constexpr (requires { Frames::readable_bytes(packet.frame); }) {
      if (Frames::readable_bytes(packet.frame) <
          size_t{packet.surplus_offset} + packet.surplus_bytes)
        return nullptr;
    }
    std::byte* const bytes = Frames::writable(packet.frame);
    return bytes == nullptr ? nullptr : bytes + packet.surplus_offset;
  }
}

template <class Frames, class Owner>
PacketState Network<Frames, Owner>::classify(const Frame& frame) const noexcept {
  const PacketHeaders headers = parse_headers(header_bytes(frame));
  PacketState packet;
  packet.flow_hash = headers.flow_hash;
  packet.length_bytes = static_cast<uint32_t>(Frames::length_bytes(frame));
  packet.priority = settings_.priority_by == PriorityBy::pcp
                        ? headers.pcp
                        : settings_.priority_of_dscp[headers.dscp];
  packet.ip_offset = headers.ip_offset;
  packet.udp_offset = headers.udp_offset;
  packet.ecn_capable = headers.ecn_capable;
  if (headers.surplus_bytes != 0 &&
      size_t{headers.surplus_offset} + headers.surplus_bytes <= packet.length_bytes) {
    packet.surplus_offset = headers.surplus_offset;
    packet.surplus_bytes = headers.surplus_bytes;
  }
  return packet;
}

// kNone when it goes nowhere.
template <class Frames, class Owner>
uint32_t Network<Frames, Owner>::destination_of(uint32_t host, std::span<const std::byte> bytes) {
  if (learns_) {
    const uint64_t source = source_mac(bytes.data());
    if ((source & kGroupBit) == 0 && (macs_.size() < kMaxLearned || macs_.contains(source)))
      add_mac(source, host);
  }
  const uint64_t mac = destination_mac(bytes.data());
  if ((mac & kGroupBit) != 0) return kEverybody;
  const uint32_t* const found = macs_.find(mac);
  if (found == nullptr) return learns_ ? kEverybody : kNone;
  return static_cast<uint32_t>(found - host_ports_.data());
}

template <class Frames, class Owner>
void Network<Frames, Owner>::send(uint32_t host, TimeNs now, Frame frame) {
  const uint32_t number = host_ports_[host];
  Port& port = ports_[number];
  const auto refuse = [&](NetworkLoss loss) {
    ++port.counters.of(loss);
    owner_.lose(number, loss, std::move(frame));
  };
  const std::span<const std::byte> bytes = header_bytes(frame);
  if (bytes.size() < kEthernetHeaderBytes) return refuse(NetworkLoss::malformed);
  if (is_link_local(bytes)) return refuse(NetworkLoss::not_forwarded);
  const uint32_t destination = destination_of(host, bytes);
  if (destination == kNone || (destination == host && learns_))
    return refuse(NetworkLoss::unknown_destination);
  if (destination == host) return owner_.deliver(host, now, std::move(frame));
  if (!port.cable.up) return refuse(NetworkLoss::link_down);
  if (pool_.in_use() >= max_packets_) return refuse(NetworkLoss::too_many);
  PacketState packet = classify(frame);
  packet.destination = destination;
  if (settings_.host_queue_bytes != 0 &&
      port.queues.fifos[packet.priority].bytes + packet.length_bytes > settings_.host_queue_bytes)
    return refuse(NetworkLoss::host_queue_full);
  enqueue(port, pool_.take(packet, std::move(frame)));
  start(number, now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::advance(TimeNs now) {
  while (due_.next() <= now) {
    const auto due = due_.pop();
    handle(due.at, due.item);
  }
}

template <class Frames, class Owner>
void Network<Frames, Owner>::handle(TimeNs now, const Event& event) {
  switch (event.kind) {
    case EventKind::departed:
      return depart(event.at, now);
    case EventKind::arrival:
      return arrive(event.at, now);
    case EventKind::pause_over:
      ports_[event.at].paused.expire(now);
      return start(event.at, now);
    case EventKind::repeat_pause: {
      PauseSender& pauses = ports_[event.at].pauses;
      pauses.repeats = false;
      pauses.pausing |= pauses.told | pauses.storm;
      return start(event.at, now);
    }
    case EventKind::down:
      return take_down(settings_.failures[event.at], event.at, now);
    case EventKind::up:
      return bring_up(settings_.failures[event.at], event.at, now);
    case EventKind::reroute:
      return reroute();
  }
}

// A frame has left, and the cable is free.
template <class Frames, class Owner>
void Network<Frames, Owner>::depart(uint32_t number, TimeNs now) {
  Port& port = ports_[number];
  port.cable.busy = false;
  start(number, now);
  if constexpr (requires { owner_.ready(uint32_t{}, now); }) {
    if (switches_[port.node] == nullptr && !port.cable.busy && port.queues.filled == 0)
      owner_.ready(host_of_node_[port.node], now);
  }
}

// The first frame of a cable is at its end, unless what was on it has been lost meanwhile.
template <class Frames, class Owner>
void Network<Frames, Owner>::arrive(uint32_t number, TimeNs now) {
  Port& port = ports_[number];
  Cable& cable = port.cable;
  if (cable.next_arrival != now) return;
  const uint32_t id = pool_.pop(cable.under_way);
  cable.next_arrival = cable.under_way.empty() ? kNever : pool_[cable.under_way.head].arrives;
  if (!cable.under_way.empty()) schedule(cable.next_arrival, EventKind::arrival, number);
  const uint32_t destination = pool_[id].destination;
  if (destination == kControl) {
    obey_pause(peer_of(number), pool_[id], now);
    pool_.give_back(id);
    return;
  }
  if (cable.loss_ppm != 0 && random_.chance(cable.loss_ppm))
    return lose(number, NetworkLoss::chance, id);
  const uint32_t node = port.far_node;
  if (switches_[node] == nullptr)
    return owner_.deliver(host_of_node_[node], now, pool_.give_back(id));
  pool_[id].ingress = peer_of(number);
  if (destination == kEverybody) {
    flood(node, id, now);
  } else {
    forward(node, id, now);
  }
}

template <class Frames, class Owner>
void Network<Frames, Owner>::forward(uint32_t node, uint32_t id, TimeNs now) {
  const Packet<Frame>& packet = pool_[id];
  const auto hops = routes_.next_hops(node, packet.destination);
  if (hops.empty()) return lose(packet.ingress, NetworkLoss::no_route, id);
  queue_at(node, switches_[node]->paths.choose(hops, packet.flow_hash, now), id, now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::flood(uint32_t node, uint32_t id, TimeNs now) {
  const PacketState packet = pool_[id];
  const Frame frame = pool_.give_back(id);
  for (const uint32_t port : routes_.ports_at(node)) {
    if (port == packet.ingress || !routes_.on_tree(port)) continue;
    Frames::share(frame, 1);
    queue_at(node, port, pool_.take(packet, frame), now);
  }
  Frames::release(frame);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::queue_at(uint32_t node, uint32_t number, uint32_t id, TimeNs now) {
  Port& port = ports_[number];
  if (!port.cable.up) return lose(number, NetworkLoss::link_down, id);
  Switch& at = *switches_[node];
  Packet<Frame>& packet = pool_[id];
  const bool lossless = at.buffer.is_lossless(packet.priority);
  if (!admit(at, port, packet) && !(trim(port, packet) && admit(at, port, packet)))
    return lose(number, lossless ? NetworkLoss::no_headroom : NetworkLoss::no_room, id);
  const uint32_t ingress = packet.ingress;
  const unsigned priority = packet.priority;
  enqueue(port, id);
  check_pause(at, ingress, priority, now);
  start(number, now);
}

template <class Frames, class Owner>
bool Network<Frames, Owner>::admit(Switch& at, const Port& port, const PacketState& packet) {
  if (at.buffer.is_lossless(packet.priority))
    return at.buffer.admit_lossless(ports_[packet.ingress].number, packet.priority,
                                    packet.length_bytes);
  return at.buffer.admit_lossy(port.queues.fifos[packet.priority].bytes, packet.length_bytes);
}

// False when it is not to be trimmed, or cannot be.
template <class Frames, class Owner>
bool Network<Frames, Owner>::trim(Port& port, Packet<Frame>& packet) {
  const auto& settings = port.settings->trim;
  if (!settings || !settings->on || packet.trimmed || packet.udp_offset == 0 ||
      packet.length_bytes <= settings->keep_bytes ||
      packet.udp_offset + kUdpBytes > settings->keep_bytes)
    return false;
  std::byte* const bytes = Frames::writable(packet.frame);
  if (bytes == nullptr) return false;
  Frames::shorten(packet.frame, settings->keep_bytes);
  cut_headers(bytes, packet.ip_offset, packet.udp_offset, settings->keep_bytes, settings->dscp);
  packet.length_bytes = settings->keep_bytes;
  packet.surplus_bytes = 0;
  packet.priority = settings->priority;
  packet.trimmed = true;
  ++port.counters.trimmed;
  return true;
}

template <class Frames, class Owner>
void Network<Frames, Owner>::enqueue(Port& port, uint32_t id) {
  const unsigned priority = pool_[id].priority;
  Fifo& fifo = port.queues.fifos[priority];
  pool_.push(fifo, id);
  port.queues.filled |= static_cast<uint8_t>(1u << priority);
  uint64_t& most = port.counters.queue_max_bytes[priority];
  most = std::max(most, fifo.bytes);
}

// Sends the next frame when the cable is free and there is one that may leave.
template <class Frames, class Owner>
void Network<Frames, Owner>::start(uint32_t number, TimeNs now) {
  Cable& cable = ports_[number].cable;
  if (cable.busy || !cable.up) return;
  cable.busy = true;  // a frame that leaves the buffer may let this port send a pause
  const uint32_t id = next_to_send(number, now);
  if (id == kNone) {
    cable.busy = false;
    return;
  }
  Packet<Frame>& packet = pool_[id];
  const TimeNs departed =
      cable.line.occupy(now, uint64_t{packet.length_bytes} + settings_.overhead_bytes);
  packet.arrives = departed + cable.delay_ns;
  schedule(departed, EventKind::departed, number);
  if (cable.under_way.empty()) {
    cable.next_arrival = packet.arrives;
    schedule(packet.arrives, EventKind::arrival, number);
  }
  pool_.push(cable.under_way, id);
}

// Takes it out of its queue and the switch's buffer. kNone when nothing may be sent.
template <class Frames, class Owner>
uint32_t Network<Frames, Owner>::next_to_send(uint32_t number, TimeNs now) {
  Port& port = ports_[number];
  if ((port.pauses.pausing | port.pauses.resuming) != 0) return make_pause(number, now);
  OutputQueues& queues = port.queues;
  const unsigned ready = queues.filled & ~port.paused.paused();
  if (ready == 0) return kNone;
  const unsigned priority =
      std::has_single_bit(ready)
          ? static_cast<unsigned>(std::countr_zero(ready))
          : queues.scheduler.pick(port.settings->scheduling, ready, [&](unsigned i) {
              return pool_[queues.fifos[i].head].length_bytes;
            });
  Fifo& fifo = queues.fifos[priority];
  const uint32_t id = pool_.pop(fifo);
  if (fifo.empty()) queues.filled &= static_cast<uint8_t>(~(1u << priority));
  ++port.counters.frames;
  port.counters.bytes += pool_[id].length_bytes;
  if (switches_[port.node] != nullptr) {
    leave_buffer(*switches_[port.node], pool_[id], now);
    mark(port, pool_[id]);
    if (pool_[id].surplus_bytes != 0 && port.settings->telemetry) [[unlikely]]
      stamp(number, pool_[id], now);
  }
  return id;
}

template <class Frames, class Owner>
void Network<Frames, Owner>::leave_buffer(Switch& at, PacketState packet, TimeNs now) {
  if (!at.buffer.is_lossless(packet.priority)) return at.buffer.release_lossy(packet.length_bytes);
  at.buffer.release_lossless(ports_[packet.ingress].number, packet.priority, packet.length_bytes);
  check_pause(at, packet.ingress, packet.priority, now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::mark(Port& port, Packet<Frame>& packet) {
  if (!packet.ecn_capable ||
      !port.queues.marker.marks(port.queues.fifos[packet.priority].bytes, random_))
    return;
  std::byte* const bytes = Frames::writable(packet.frame);
  if (bytes != nullptr && mark_congestion(bytes + packet.ip_offset)) ++port.counters.marked;
}

// Path telemetry of the port: all its queues, and what it has sent with this packet.
template <class Frames, class Owner>
void Network<Frames, Owner>::stamp(uint32_t number, Packet<Frame>& packet, TimeNs now) {
  std::byte* const record = surplus_of(packet);
  if (record == nullptr || !is_path_telemetry({record, packet.surplus_bytes})) return;
  const Port& port = ports_[number];
  uint64_t queued_bytes = 0;
  for (const Fifo& fifo : port.queues.fifos) queued_bytes += fifo.bytes;
  const uint64_t sent_bytes = port.counters.bytes + port.counters.frames * settings_.overhead_bytes;
  constexpr uint64_t kMax = UINT32_MAX;
  stamp_telemetry(record, number,
                  {.time_ns = static_cast<uint32_t>(now),
                   .sent_bytes = static_cast<uint32_t>(sent_bytes),
                   .queue_bytes = static_cast<uint32_t>(std::min(queued_bytes, kMax)),
                   .rate_kbps = static_cast<uint32_t>(
                       std::min(port.cable.line.rate_bits_per_s() / 1000, kMax))});
}

// Called after the bytes that `ingress` has in the switch have changed.
template <class Frames, class Owner>
void Network<Frames, Owner>::check_pause(Switch& at, uint32_t ingress, unsigned priority,
                                         TimeNs now) {
  if (!at.buffer.is_lossless(priority)) return;
  Port& port = ports_[ingress];
  const auto bit = static_cast<uint8_t>(1u << priority);
  if ((port.pauses.told & bit) == 0) {
    if (!at.buffer.wants_pause(port.number, priority)) return;
    port.pauses.told |= bit;
    port.pauses.pausing |= bit;
    port.pauses.resuming &= static_cast<uint8_t>(~bit);
  } else {
    if (!at.buffer.wants_resume(port.number, priority)) return;
    port.pauses.told &= static_cast<uint8_t>(~bit);
    if ((port.pauses.storm & bit) != 0) return;
    port.pauses.pausing &= static_cast<uint8_t>(~bit);
    port.pauses.resuming |= bit;
  }
  start(ingress, now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::storm(uint32_t host, TimeNs now, bool received, bool sent) {
  const uint32_t number = host_ports_[host];
  set_storm(number, received, now);
  set_storm(peer_of(number), sent, now);
}

// What the buffer needs paused stays paused when a storm is over.
template <class Frames, class Owner>
void Network<Frames, Owner>::set_storm(uint32_t number, bool on, TimeNs now) {
  PauseSender& pauses = ports_[number].pauses;
  if (on == (pauses.storm != 0)) return;
  constexpr uint8_t kAll = 0xff;
  pauses.storm = on ? kAll : 0;
  const auto changed = static_cast<uint8_t>(~pauses.told);
  uint8_t& now_wanted = on ? pauses.pausing : pauses.resuming;
  uint8_t& no_more = on ? pauses.resuming : pauses.pausing;
  now_wanted |= changed;
  no_more &= static_cast<uint8_t>(~changed);
  start(number, now);
}

template <class Frames, class Owner>
uint32_t Network<Frames, Owner>::make_pause(uint32_t number, TimeNs now) {
  Port& port = ports_[number];
  PacketState pause;
  pause.destination = kControl;
  pause.length_bytes = kPauseFrameBytes;
  pause.pause = std::exchange(port.pauses.pausing, uint8_t{0});
  pause.resume = std::exchange(port.pauses.resuming, uint8_t{0});
  port.counters.pauses_sent += pause.pause != 0;
  port.counters.resumes_sent += pause.pause == 0;
  if (pause.pause != 0 && !std::exchange(port.pauses.repeats, true))
    schedule(now + pause_ns(port) / 2, EventKind::repeat_pause, number);
  return pool_.take(pause, Frame{});
}

template <class Frames, class Owner>
void Network<Frames, Owner>::obey_pause(uint32_t number, const PacketState& pause, TimeNs now) {
  Port& port = ports_[number];
  const TimeNs until = now + pause_ns(ports_[peer_of(number)]);  // as its sender says
  for (unsigned priority = 0; priority < kPriorities; ++priority) {
    if ((pause.pause >> priority & 1) != 0) port.paused.set(priority, now, until);
    if ((pause.resume >> priority & 1) != 0) port.paused.set(priority, now, now);
  }
  port.counters.pauses_received += pause.pause != 0;
  if (pause.pause != 0) schedule(until, EventKind::pause_over, number);
  start(number, now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::take_down(const LinkFailure& failure, uint32_t number, TimeNs now) {
  schedule(now + (failure.up_ns - failure.down_ns), EventKind::up, number);
  if (++links_down_[failure.link] != 1) return;
  for (const bool at_b : {false, true}) ports_[port_of_link(failure.link, at_b)].cable.up = false;
  for (const bool at_b : {false, true}) empty(port_of_link(failure.link, at_b), now);
  reroute_later(now);
}

template <class Frames, class Owner>
void Network<Frames, Owner>::bring_up(const LinkFailure& failure, uint32_t number, TimeNs now) {
  if (failure.every_ns != 0)
    schedule(now - (failure.up_ns - failure.down_ns) + failure.every_ns, EventKind::down, number);
  if (--links_down_[failure.link] != 0) return;
  for (const bool at_b : {false, true}) {
    const uint32_t back = port_of_link(failure.link, at_b);
    ports_[back].cable.up = true;
    start(back, now);
  }
  reroute_later(now);
}

// Loses the frames in a port's queues and on its cable, and forgets the pauses that it knew of.
template <class Frames, class Owner>
void Network<Frames, Owner>::empty(uint32_t number, TimeNs now) {
  Port& port = ports_[number];
  port.cable.next_arrival = kNever;
  port.paused.clear(now);
  const uint8_t storm = port.pauses.storm;
  port.pauses = {.pausing = storm, .storm = storm, .repeats = port.pauses.repeats};
  while (!port.cable.under_way.empty()) {
    const uint32_t id = pool_.pop(port.cable.under_way);
    if (pool_[id].destination != kControl) {
      lose(number, NetworkLoss::link_down, id);
    } else {
      pool_.give_back(id);
    }
  }
  for (Fifo& fifo : port.queues.fifos) {
    while (!fifo.empty()) {
      const uint32_t id = pool_.pop(fifo);
      if (switches_[port.node] != nullptr) leave_buffer(*switches_[port.node], pool_[id], now);
      lose(number, NetworkLoss::link_down, id);
    }
  }
  port.queues.filled = 0;
}

template <class Frames, class Owner>
void Network<Frames, Owner>::reroute() {
  std::vector<bool> link_up;
  for (const unsigned down : links_down_) link_up.push_back(down == 0);
  routes_.compute(link_up);
}

}  // namespace rocemu::network
