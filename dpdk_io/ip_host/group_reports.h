// Tells routers and switches which multicast groups this host is in: IGMP (RFC 3376, RFC 2236) and
// MLD (RFC 3810, RFC 2710), in the version that the last query was of, to begin with the newest.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "base/time.h"
#include "dpdk_io/ip_host/ip_settings.h"
#include "dpdk_io/ip_host/neighbour_cache.h"
#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

// The reports of one address family: there is an object for each.
class GroupReports {
 public:
  using Send = std::function<void(Frame)>;

  // `source` is what reports come from: an IPv4 address, or a link-local IPv6 one. Its family is
  // the groups'.
  GroupReports(const MacAddress& mac, const IpAddress& source, uint64_t seed, Send send);

  // These are the groups from now on; those of the other family do not count. Nobody is told before
  // the first announce().
  void set(TimeNs now, const std::set<IpAddress>& groups);
  // The link has come up: everybody is told, or told again.
  void announce(TimeNs now);
  // Ignores what is no query.
  void on_packet(TimeNs now, const IpPacket& packet);

  void on_timeout(TimeNs now);
  TimeNs next_deadline() const noexcept { return report_at_; }

 private:
  enum class Record : uint8_t { is_in = 2, leaves = 3, joins = 4 };

  void report(Record record, const IpAddress& group);
  void report_old(Record record, const IpAddress& group);
  void report_at(TimeNs when);
  TimeNs random_up_to(TimeNs limit) noexcept;

  MacAddress mac_;
  IpAddress source_;
  Send send_;
  std::set<IpAddress> groups_;
  bool announced_ = false;
  bool old_querier_ = false;
  TimeNs report_at_ = kNever;
  TimeNs quiet_until_ = 0;
  uint64_t random_;
};

}  // namespace rocemu::dpdk_io
