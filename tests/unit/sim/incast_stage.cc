#include "tests/unit/sim/incast_stage.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace rocemu::incast {

using transport::QpState;

Stage::Stage(const Options& options)
    : options_(options),
      network_(network::star(options.senders + 1, options.link), options.network, *this) {
  add_hosts();
  for (uint32_t sender = 0; sender < options_.senders; ++sender) connect(sender);
  for (uint32_t sender = 0; sender < options_.senders; ++sender) {
    hosts_[sender].writes.open = true;
    hosts_[sender].endpoint->on_doorbell(hosts_[sender].qpns.front());
  }
}

void Stage::add_hosts() {
  const congestion::ParsedSettings parsed = congestion::parse_settings(options_.congestion);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  for (uint32_t i = 0; i <= options_.senders; ++i) {
    network_.add_mac(network::mac_number(mac_of(i)), i);
    Host& host = hosts_.emplace_back();
    host.stage = this;
    host.number = i;
    host.line = network::Line(options_.link.rate_bits_per_s);
    transport::TransportLimits limits;
    limits.line_rate_bps = options_.link.rate_bits_per_s;
    limits.congestion = *parsed.settings;
    host.endpoint = std::make_unique<transport::Endpoint>(memory_, events_, limits, 64u);
  }
}

void Stage::connect(uint32_t sender) {
  Host& from = hosts_[sender];
  const auto make = [&](Host& host) {
    const auto qpn =
        host.endpoint->create_rc({1, &host.writes, &receives_, &failures_, &failures_});
    REQUIRE(qpn);
    host.qpns.push_back(*qpn);
    return *qpn;
  };
  const wire::Qpn near = make(from);
  const wire::Qpn far = make(receiver());
  set_up(from, near, receiver(), far);
  set_up(receiver(), far, from, near);
}

void Stage::set_up(Host& host, wire::Qpn qpn, Host& peer, wire::Qpn peer_qpn) {
  transport::QpAttributes attributes;
  attributes.path.local_gid = gid_of(host.number);
  attributes.path.remote_gid = gid_of(peer.number);
  attributes.path.headers = wire::HeaderTemplate(
      {mac_of(peer.number), mac_of(host.number), {}},
      {.source = attributes.path.local_gid, .destination = attributes.path.remote_gid},
      {.source_port = static_cast<uint16_t>(0xc000 + host.number)});
  attributes.remote_qpn = peer_qpn;
  attributes.access = transport::kRemoteWrite;
  attributes.timeout = 10;  // 4.2 ms
  attributes.retry_count = 7;
  for (const QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    host.endpoint->modify(qpn, state, attributes);
}

void Stage::deliver(uint32_t host, TimeNs, const network::SharedFrame& frame) {
  const std::span<const std::byte> bytes = frame.bytes();
  hosts_[host].endpoint->on_frames(now_, {&bytes, 1});
  pump(hosts_[host]);
}

// One frame at a time, when the line is free.
void Stage::pump(Host& host) {
  while (host.endpoint->wants_transmit() && host.free_at <= now_)
    if (host.endpoint->transmit(now_, host, 1) == 0) return;
}

void Stage::run_until(TimeNs until) {
  for (;;) {
    TimeNs next = network_.next_event();
    for (const Host& host : hosts_) next = std::min(next, host.next_event(now_));
    now_ = std::max(now_, std::min(next, until));
    if (next > until) return;
    network_.advance(now_);
    for (Host& host : hosts_) {
      if (host.endpoint->next_deadline() <= now_) host.endpoint->on_timeout(now_);
      pump(host);
    }
  }
}

uint64_t Stage::count(transport::TraceEvent event) const {
  uint64_t sum = 0;
  for (const Host& host : hosts_) sum += host.endpoint->counters()[event];
  return sum;
}

}  // namespace rocemu::incast
