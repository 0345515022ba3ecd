#include "emulator/experiment/cluster/cluster.h"

#include <algorithm>
#include <stdexcept>

#include "emulator/wire/build.h"
#include "network/mac.h"

namespace rocemu::experiment {

using transport::QpState;

namespace {

// The dynamic ports, of which a connection's is one: its flow, for the switches.
constexpr uint16_t kFirstSourcePort = 0xc000;
constexpr uint32_t kSourcePorts = 0x4000;
// A NIC that has more to do, though its port is free and nothing came of asking it.
constexpr TimeNs kLaterNs = 1000;

MacAddress mac_of(uint32_t host) {
  return {2,
          0,
          0,
          static_cast<uint8_t>(host >> 16),
          static_cast<uint8_t>(host >> 8),
          static_cast<uint8_t>(host)};
}

// 10.N of host N - 1.
wire::Gid gid_of(uint32_t host) {
  const uint32_t number = host + 1;
  wire::Gid gid;
  gid.bytes = {0,
               0,
               0,
               0,
               0,
               0,
               0,
               0,
               0,
               0,
               0xff,
               0xff,
               10,
               static_cast<uint8_t>(number >> 16),
               static_cast<uint8_t>(number >> 8),
               static_cast<uint8_t>(number)};
  return gid;
}

// The network has a seed of its own; that of the experiment changes what comes of it.
network::NetworkSettings seeded(network::NetworkSettings settings, Random& random) {
  settings.seed ^= random.fork();
  return settings;
}

}  // namespace

Cluster::Cluster(const network::Description& network, const Nics& nics, uint64_t seed)
    : settings_(nics),
      random_(seed),
      network_(network.topology, seeded(network.settings, random_), *this) {
  for (uint32_t host = 0; host < network_.host_count(); ++host) {
    const NicSettings& nic = settings_.of(host);
    transport::TransportLimits limits = nic.limits;
    const uint32_t link = network::link_of(network_.port_of_host(host));
    limits.line_rate_bps = network.topology.links[link].settings.rate_bits_per_s;
    network_.add_mac(network::mac_number(mac_of(host)), host);
    nics_.emplace_back(*this, host, buffers_, memory_, limits, nic.max_qps);
  }
}

Cluster::~Cluster() = default;

void Cluster::Completions::push(const transport::Completion& completion) noexcept {
  using transport::WcOpcode;
  using transport::WcStatus;
  const bool received = completion.opcode == WcOpcode::receive ||
                        completion.opcode == WcOpcode::receive_rdma_with_imm;
  if (received) {
    if (completion.status == WcStatus::success && completion.has_immediate)
      told.push_back({completion.immediate, Told::What::received});
    return;
  }
  told.push_back({static_cast<uint32_t>(completion.wr_id), completion.status == WcStatus::success
                                                               ? Told::What::completed
                                                               : Told::What::failed});
}

transport::QpAttributes Cluster::attributes_of(const End& end, const End& peer,
                                               uint16_t source_port) {
  const NicSettings& own = settings_.of(end.host);
  const uint8_t peers_max_rd_atomic = settings_.of(peer.host).max_rd_atomic;
  transport::QpAttributes attributes;
  const wire::Gid local = gid_of(end.host);
  const wire::Gid remote = gid_of(peer.host);
  attributes.path.headers =
      wire::HeaderTemplate({mac_of(peer.host), mac_of(end.host), {}},
                           {.source = local,
                            .destination = remote,
                            .traffic_class = static_cast<uint8_t>(own.dscp << 2)},
                           {.source_port = source_port});
  attributes.path.local_gid = local;
  attributes.path.remote_gid = remote;
  attributes.path_mtu_bytes = settings_.path_mtu_bytes(end.host, peer.host);
  attributes.remote_qpn = peer.qpn;
  attributes.access = transport::kRemoteWrite | transport::kRemoteRead;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic =
      std::min(own.max_rd_atomic, peers_max_rd_atomic);
  attributes.timeout = own.timeout;
  attributes.retry_count = own.retry_count;
  attributes.rnr_retry = own.rnr_retry;
  return attributes;
}

ConnectionId Cluster::connect(uint32_t from, uint32_t to) {
  ConnectionId id = static_cast<ConnectionId>(connections_.size());
  if (free_connections_.empty()) {
    connections_.emplace_back();
  } else {
    id = free_connections_.back();
    free_connections_.pop_back();
  }
  auto& ends = connections_[id].ends;
  ends[0].host = from;
  ends[1].host = to;
  for (End& end : ends) {
    const auto qpn = nics_[end.host].endpoint().create_rc(
        {1, &end.queue, &end.receives, &completions_, &completions_});
    if (!qpn)
      throw std::runtime_error("host " + std::to_string(end.host) + " has " +
                               std::to_string(settings_.of(end.host).max_qps) +
                               " QPs, and none for another flow ([nic] max_qps)");
    end.qpn = *qpn;
  }
  const auto source_port = static_cast<uint16_t>(kFirstSourcePort + random_.below(kSourcePorts));
  const std::array<wire::Psn, 2> first{wire::Psn(static_cast<uint32_t>(random_.next())),
                                       wire::Psn(static_cast<uint32_t>(random_.next()))};
  for (size_t i = 0; i < 2; ++i) {
    transport::QpAttributes attributes = attributes_of(ends[i], ends[1 - i], source_port);
    attributes.send_psn = first[i];
    attributes.receive_psn = first[1 - i];
    for (const QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      nics_[ends[i].host].endpoint().modify(ends[i].qpn, state, attributes);
  }
  ++counts_.connections;
  return id;
}

void Cluster::close(ConnectionId connection) {
  for (End& end : connections_[connection].ends) {
    nics_[end.host].endpoint().destroy(end.qpn);
    end.queue = {};
    end.receives = {};
  }
  free_connections_.push_back(connection);
}

void Cluster::post(ConnectionId connection, const Message& message, TimeNs now) {
  now_ = now;
  auto& [end, far] = connections_[connection].ends;
  memory_.make_room_for(message.flow);
  if (takes_receive(message.opcode)) far.receives.expect(message.flow);
  end.queue.post(message);
  nics_[end.host].endpoint().on_doorbell(end.qpn);
  pump(end.host, now);
}

std::optional<uint64_t> Cluster::allowed_rate_bps(ConnectionId connection) const {
  const End& end = connections_[connection].ends[0];
  return nics_[end.host].endpoint().allowed_rate_bps(end.qpn);
}

transport::Counters Cluster::counters() const {
  transport::Counters sum;
  for (const Nic<Cluster>& nic : nics_)
    for (size_t i = 0; i < transport::kTraceEvents; ++i)
      sum[transport::TraceEvent(i)] += nic.endpoint().counters()[transport::TraceEvent(i)];
  return sum;
}

void Cluster::advance(TimeNs now) {
  network_.advance(now);
  while (const auto host = timers_.pop_due(now)) turn(*host, now);
}

void Cluster::deliver(uint32_t host, TimeNs now, HeaderFrame* frame) {
  ++counts_.frames_delivered;
  const uint32_t length_bytes = frame->length_bytes;
  const bool cut = frame->shortened;
  frame->write(arriving_.data());
  HeaderFrames::release(frame);
  if (cut) {
    ++counts_.cut_frames;
    return;
  }
  const std::span<const std::byte> bytes = std::span(arriving_).first(length_bytes);
  nics_[host].endpoint().on_frames(now, {&bytes, 1}, transport::Icrc::owed);
  pump(host, now);
}

void Cluster::ready(uint32_t host, TimeNs now) {
  if (nics_[host].endpoint().wants_transmit()) pump(host, now);
}

void Cluster::send(uint32_t host, const std::byte* bytes, uint32_t length_bytes) {
  network_.send(host, now_, frames_.make(bytes, length_bytes));
}

void Cluster::turn(uint32_t host, TimeNs now) {
  transport::Endpoint& endpoint = nics_[host].endpoint();
  if (endpoint.next_deadline() <= now) endpoint.on_timeout(now);
  pump(host, now);
}

// Rule 2.
void Cluster::pump(uint32_t host, TimeNs now) {
  now_ = now;
  Nic<Cluster>& nic = nics_[host];
  transport::Endpoint& endpoint = nic.endpoint();
  if (!network_.idle(host)) {
    nic.transmit(now, 0);
  } else {
    while (endpoint.wants_transmit() && network_.idle(host))
      if (nic.transmit(now, 1) == 0) break;
  }
  TimeNs wanted = endpoint.next_deadline();
  if (endpoint.wants_transmit() && network_.idle(host)) wanted = std::min(wanted, now + kLaterNs);
  wanted = std::max(wanted, now + 1);
  if (wanted < timers_.deadline_of(host)) timers_.schedule(host, wanted);
}

}  // namespace rocemu::experiment
