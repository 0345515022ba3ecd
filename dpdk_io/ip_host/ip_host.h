// IpHost does what an IP host does on an Ethernet link beside its own traffic, for ports that have
// no kernel to do it: it asks for and tells MAC addresses (ARP, neighbour discovery), answers ping,
// and reports the multicast groups it is in.
//
// Sans-IO: time and frames come in as parameters, frames to be sent are pulled. All that comes in
// may be made by anybody: memory and answers are bounded, and what is not understood is ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "dpdk_io/ip_host/group_reports.h"
#include "dpdk_io/ip_host/ip_settings.h"
#include "dpdk_io/ip_host/neighbour_cache.h"
#include "dpdk_io/ip_host/packet.h"
#include "dpdk_io/ip_host/rate_limit.h"

namespace rocemu::dpdk_io {

struct IpHostStats {
  uint64_t rx_frames = 0;
  uint64_t neighbour_answers = 0;  // ARP replies and neighbour advertisements sent
  uint64_t echo_answers = 0;
  // Questions of both kinds, beyond the rate or when too many frames wait.
  uint64_t not_answered = 0;
  uint64_t conflicts = 0;  // somebody else says that an address of ours is his
};

class IpHost {
 public:
  static constexpr size_t kMaxWaiting = 512;  // frames to be sent

  struct Conflict {
    IpAddress address;
    MacAddress mac;
  };

  // The link-local IPv6 address of the MAC is the host's besides those in `settings`. `seed` tells
  // hosts apart that would otherwise report at the same instant.
  IpHost(const MacAddress& mac, IpSettings settings, uint64_t seed);
  IpHost(const IpHost&) = delete;
  IpHost& operator=(const IpHost&) = delete;

  // The link has come up: tells the neighbours of its addresses, twice, and of its groups, and
  // forgets their MACs, since others may be at its other end.
  void on_link_up(TimeNs now);

  // A frame of the link, from the Ethernet header on.
  void on_frame(TimeNs now, Bytes frame);

  void on_timeout(TimeNs now);
  TimeNs next_deadline() const noexcept;

  struct Answer {
    enum class Kind { found, not_yet, unreachable };
    Kind kind = Kind::unreachable;
    MacAddress mac{};
  };
  // Answers where frames for `destination` go. After not_yet it is being found out: ask again.
  Answer resolve(TimeNs now, const IpAddress& destination);

  // The groups that somebody behind this port wants frames of.
  void set_groups(TimeNs now, std::set<IpAddress> groups);
  // The MACs of those and of the groups that the host is in itself: what has to be let in.
  std::vector<MacAddress> group_macs() const;

  bool wants_to_send() const noexcept { return !outgoing_.empty(); }
  Frame next_frame();

  const IpHostStats& stats() const noexcept { return stats_; }
  size_t neighbours() const noexcept { return cache_.known(); }
  // The last conflict, which is handed out once.
  std::optional<Conflict> take_conflict();

 private:
  void send(Frame frame);
  void ask(const IpAddress& neighbour);
  void announce_addresses();
  bool is_own(const IpAddress& address) const;
  bool may_answer(TimeNs now, RateLimit& limit);
  void on_arp(TimeNs now, Bytes frame);
  void on_neighbour_message(TimeNs now, const IpPacket& packet, const MacAddress& from);
  void on_echo_request(TimeNs now, const IpPacket& packet, const MacAddress& from);
  void on_claim(const IpAddress& address, const MacAddress& mac);

  MacAddress mac_;
  IpSettings settings_;  // the link-local address included
  NeighbourCache cache_;
  std::deque<Frame> outgoing_;
  std::optional<GroupReports> igmp_;  // with an IPv4 address
  GroupReports mld_;
  std::set<IpAddress> own_groups_;  // groups of neighbour discovery
  std::set<IpAddress> groups_;
  RateLimit neighbour_limit_;
  RateLimit echo_limit_;
  TimeNs announce_at_ = kNever;
  std::optional<Conflict> conflict_;
  IpHostStats stats_;
};

}  // namespace rocemu::dpdk_io
