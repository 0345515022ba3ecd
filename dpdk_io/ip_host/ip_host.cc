#include "dpdk_io/ip_host/ip_host.h"

#include <algorithm>
#include <utility>

#include "dpdk_io/ip_host/arp.h"
#include "dpdk_io/ip_host/echo.h"
#include "dpdk_io/ip_host/neighbour_discovery.h"

namespace rocemu::dpdk_io {
namespace {

// The second announcement, for those who missed the first (RFC 5227, ANNOUNCE_INTERVAL).
constexpr TimeNs kAnnounceAgainNs = 2'000'000'000;
constexpr RateLimit kNeighbourLimit{5000, 500};
constexpr RateLimit kEchoLimit{5000, 500};
constexpr uint8_t kLinkLocalBits = 64;
constexpr IpAddress kUnspecified{};

}  // namespace

IpHost::IpHost(const MacAddress& mac, IpSettings settings, uint64_t seed)
    : mac_(mac),
      settings_(std::move(settings)),
      mld_(mac, link_local_address(mac), seed, [this](Frame frame) { send(std::move(frame)); }),
      neighbour_limit_(kNeighbourLimit),
      echo_limit_(kEchoLimit) {
  const LinkAddress link_local{link_local_address(mac), kLinkLocalBits};
  if (!is_own(link_local.address)) settings_.addresses.push_back(link_local);
  for (const LinkAddress& own : settings_.addresses) {
    if (!own.address.is_ipv4()) {
      own_groups_.insert(solicited_node_group(own.address));
    } else if (!igmp_) {
      igmp_.emplace(mac, own.address, seed, [this](Frame frame) { send(std::move(frame)); });
    }
  }
  mld_.set(0, own_groups_);
}

void IpHost::on_link_up(TimeNs now) {
  cache_.forget_known();
  announce_addresses();
  announce_at_ = now + kAnnounceAgainNs;
  if (igmp_) igmp_->announce(now);
  mld_.announce(now);
}

void IpHost::announce_addresses() {
  for (const LinkAddress& own : settings_.addresses) {
    if (own.address.is_ipv4()) {
      send(build_arp_request(mac_, own.address, own.address));
    } else {
      send(build_advertisement(mac_, own.address, {}, kUnspecified));
    }
  }
}

void IpHost::on_frame(TimeNs now, Bytes frame) {
  ++stats_.rx_frames;
  if (frame.size() < kEthernetBytes) return;
  const MacAddress from = source_of(frame);
  const MacAddress to = destination_of(frame);
  if (!is_station(from) || from == mac_ || (to != mac_ && !is_group(to))) return;
  if (ether_type_of(frame) == kEtherTypeArp) return on_arp(now, frame);
  const auto packet = parse_ip(frame);
  if (!packet) return;
  if (is_echo_request(*packet)) return on_echo_request(now, *packet, from);
  if (packet->destination.is_ipv4()) {
    if (igmp_) igmp_->on_packet(now, *packet);
  } else if (packet->protocol == kIpProtocolIcmpv6) {
    on_neighbour_message(now, *packet, from);
    mld_.on_packet(now, *packet);
  }
}

void IpHost::on_arp(TimeNs now, Bytes frame) {
  const auto message = parse_arp(frame);
  if (!message || message->sender_mac == mac_) return;
  if (is_own(message->sender)) return on_claim(message->sender, message->sender_mac);
  if (is_unicast(message->sender)) cache_.learn(now, message->sender, message->sender_mac);
  if (!message->request || !is_own(message->target) || !may_answer(now, neighbour_limit_)) return;
  ++stats_.neighbour_answers;
  send(build_arp_reply(mac_, message->target, message->sender_mac, message->sender));
}

void IpHost::on_neighbour_message(TimeNs now, const IpPacket& packet, const MacAddress& from) {
  const auto message = parse_neighbour_message(packet);
  if (!message) return;
  const MacAddress mac = message->mac.value_or(from);
  if (mac == mac_) return;
  if (!message->solicitation) {
    if (is_own(message->target)) return on_claim(message->target, mac);
    return cache_.learn(now, message->target, mac, message->overriding);
  }
  if (is_own(packet.source)) return on_claim(packet.source, mac);
  if (is_unicast(packet.source)) cache_.learn(now, packet.source, mac);
  if (!is_own(message->target) || !may_answer(now, neighbour_limit_)) return;
  if (is_unspecified(packet.source)) on_claim(message->target, mac);
  ++stats_.neighbour_answers;
  send(build_advertisement(mac_, message->target, mac, packet.source));
}

void IpHost::on_echo_request(TimeNs now, const IpPacket& packet, const MacAddress& from) {
  if (!is_own(packet.destination) || !is_unicast(packet.source) || is_own(packet.source) ||
      !may_answer(now, echo_limit_))
    return;
  if (auto reply = build_echo_reply(packet, mac_, from)) {
    ++stats_.echo_answers;
    send(std::move(*reply));
  }
}

void IpHost::on_claim(const IpAddress& address, const MacAddress& mac) {
  ++stats_.conflicts;
  conflict_ = {address, mac};
}

bool IpHost::may_answer(TimeNs now, RateLimit& limit) {
  if (outgoing_.size() < kMaxWaiting && limit.allows(now)) return true;
  ++stats_.not_answered;
  return false;
}

void IpHost::on_timeout(TimeNs now) {
  for (const IpAddress& neighbour : cache_.due(now)) ask(neighbour);
  if (announce_at_ <= now) {
    announce_at_ = kNever;
    announce_addresses();
  }
  if (igmp_) igmp_->on_timeout(now);
  mld_.on_timeout(now);
}

TimeNs IpHost::next_deadline() const noexcept {
  const TimeNs igmp = igmp_ ? igmp_->next_deadline() : kNever;
  return std::min({cache_.next_deadline(), announce_at_, igmp, mld_.next_deadline()});
}

IpHost::Answer IpHost::resolve(TimeNs now, const IpAddress& destination) {
  using Kind = Answer::Kind;
  if (is_own(destination)) return {Kind::found, mac_};
  if (is_multicast(destination)) return {Kind::found, group_mac(destination)};
  const auto neighbour = next_hop(settings_, destination);
  if (!neighbour || !source_towards(settings_, *neighbour)) return {};
  const NeighbourCache::LookUp found = cache_.look_up(now, *neighbour);
  if (found.mac) return {Kind::found, *found.mac};
  if (found.ask) ask(*neighbour);
  return {Kind::not_yet, {}};
}

void IpHost::ask(const IpAddress& neighbour) {
  const auto source = source_towards(settings_, neighbour);
  if (!source) return;
  send(neighbour.is_ipv4() ? build_arp_request(mac_, *source, neighbour)
                           : build_solicitation(mac_, *source, neighbour));
}

void IpHost::set_groups(TimeNs now, std::set<IpAddress> groups) {
  groups_ = std::move(groups);
  groups_.erase(kAllNodes);  // nobody says so of himself
  groups_.erase(kAllHosts);
  if (igmp_) igmp_->set(now, groups_);
  std::set<IpAddress> all = groups_;
  all.insert(own_groups_.begin(), own_groups_.end());
  mld_.set(now, all);
}

std::vector<MacAddress> IpHost::group_macs() const {
  std::set<MacAddress> macs = {group_mac(kAllNodes), group_mac(kAllHosts)};
  for (const IpAddress& group : own_groups_) macs.insert(group_mac(group));
  for (const IpAddress& group : groups_) macs.insert(group_mac(group));
  return {macs.begin(), macs.end()};
}

void IpHost::send(Frame frame) {
  if (outgoing_.size() < kMaxWaiting) outgoing_.push_back(std::move(frame));
}

Frame IpHost::next_frame() {
  Frame frame = std::move(outgoing_.front());
  outgoing_.pop_front();
  return frame;
}

std::optional<IpHost::Conflict> IpHost::take_conflict() {
  return std::exchange(conflict_, std::nullopt);
}

bool IpHost::is_own(const IpAddress& address) const {
  return std::ranges::any_of(settings_.addresses,
                             [&](const LinkAddress& own) { return own.address == address; });
}

}  // namespace rocemu::dpdk_io
