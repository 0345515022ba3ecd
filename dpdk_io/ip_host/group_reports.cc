#include "dpdk_io/ip_host/group_reports.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

constexpr TimeNs kNsPerMs = 1'000'000;
// A report may be lost: it is sent again within this time (RFC 3376, 8.11).
constexpr TimeNs kRepeatWithinNs = 1'000 * kNsPerMs;
// However many queries come.
constexpr TimeNs kQuietNs = 100 * kNsPerMs;

constexpr uint8_t kIgmpQuery = 0x11;
constexpr uint8_t kIgmpReportV2 = 0x16;
constexpr uint8_t kIgmpLeave = 0x17;
constexpr uint8_t kIgmpReportV3 = 0x22;
constexpr size_t kIgmpOldBytes = 8;
constexpr uint8_t kMldQuery = 130;
constexpr uint8_t kMldReportV1 = 131;
constexpr uint8_t kMldDone = 132;
constexpr uint8_t kMldReportV2 = 143;
constexpr size_t kMldOldBytes = 24;

constexpr IpAddress ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}
constexpr IpAddress link_group(uint8_t last) {
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}
constexpr IpAddress kIgmpV3Routers = ipv4(224, 0, 0, 22);
constexpr IpAddress kIpv4Routers = ipv4(224, 0, 0, 2);
constexpr IpAddress kMldV2Routers = link_group(22);
constexpr IpAddress kIpv6Routers = link_group(2);

Bytes family_bytes(const IpAddress& address) {
  return address.is_ipv4() ? Bytes(address.ipv4_bytes(), 4) : Bytes(address.bytes);
}

}  // namespace

GroupReports::GroupReports(const MacAddress& mac, const IpAddress& source, uint64_t seed, Send send)
    : mac_(mac), source_(source), send_(std::move(send)), random_(seed | 1) {}

void GroupReports::set(TimeNs now, const std::set<IpAddress>& groups) {
  std::set<IpAddress> wanted;
  std::ranges::copy_if(groups, std::inserter(wanted, wanted.end()),
                       [&](const IpAddress& group) { return same_family(group, source_); });
  if (!announced_) {
    groups_ = std::move(wanted);
    return;
  }
  for (const IpAddress& group : groups_)
    if (!wanted.contains(group)) report(Record::leaves, group);
  bool joined = false;
  for (const IpAddress& group : wanted) {
    if (groups_.contains(group)) continue;
    report(Record::joins, group);
    joined = true;
  }
  groups_ = std::move(wanted);
  if (joined) report_at(now + random_up_to(kRepeatWithinNs));
}

void GroupReports::announce(TimeNs now) {
  announced_ = true;
  if (!groups_.empty()) report_at(now);
}

void GroupReports::on_packet(TimeNs now, const IpPacket& packet) {
  const bool is_ipv4 = source_.is_ipv4();
  const Bytes message = packet.payload;
  if (packet.destination.is_ipv4() != is_ipv4 ||
      packet.protocol != (is_ipv4 ? kIpProtocolIgmp : kIpProtocolIcmpv6))
    return;
  const size_t old_bytes = is_ipv4 ? kIgmpOldBytes : kMldOldBytes;
  if (message.size() < old_bytes || message[0] != (is_ipv4 ? kIgmpQuery : kMldQuery) ||
      packet.hop_limit != 1 || !is_multicast(packet.destination) || !has_right_checksum(packet))
    return;
  old_querier_ = message.size() == old_bytes;
  if (groups_.empty()) return;
  // The field counts tenths of a second (IGMP) or milliseconds (MLD); values above 127 or 32767 are
  // a mantissa and an exponent.
  const TimeNs within = is_ipv4 ? std::max<TimeNs>(message[1], 1) * 100 * kNsPerMs
                                : load_be16(&message[4]) * kNsPerMs;
  report_at(std::max(now, quiet_until_) + random_up_to(within));
}

void GroupReports::on_timeout(TimeNs now) {
  if (now < report_at_) return;
  report_at_ = kNever;
  quiet_until_ = now + kQuietNs;
  for (const IpAddress& group : groups_) report(Record::is_in, group);
}

void GroupReports::report(Record record, const IpAddress& group) {
  if (old_querier_) return report_old(record, group);
  const bool is_ipv4 = group.is_ipv4();
  // Header: type, checksum, one record. Record: its kind, no sources, the group.
  Frame message = {is_ipv4 ? kIgmpReportV3 : kMldReportV2, 0, 0, 0, 0, 0, 0, 1};
  const std::array<uint8_t, 4> head = {static_cast<uint8_t>(record), 0, 0, 0};
  append(message, head);
  append(message, family_bytes(group));
  const IpAddress& to = is_ipv4 ? kIgmpV3Routers : kMldV2Routers;
  send_(build_ip(
      {mac_, group_mac(to), source_, to, is_ipv4 ? kIpProtocolIgmp : kIpProtocolIcmpv6, 1, true},
      message));
}

void GroupReports::report_old(Record record, const IpAddress& group) {
  const bool is_ipv4 = group.is_ipv4();
  const bool leaves = record == Record::leaves;
  Frame message;
  if (is_ipv4) {
    message = {leaves ? kIgmpLeave : kIgmpReportV2, 0, 0, 0};
  } else {
    message = {leaves ? kMldDone : kMldReportV1, 0, 0, 0, 0, 0, 0, 0};
  }
  append(message, family_bytes(group));
  const IpAddress to = !leaves ? group : is_ipv4 ? kIpv4Routers : kIpv6Routers;
  send_(build_ip(
      {mac_, group_mac(to), source_, to, is_ipv4 ? kIpProtocolIgmp : kIpProtocolIcmpv6, 1, true},
      message));
}

void GroupReports::report_at(TimeNs when) { report_at_ = std::min(report_at_, when); }

// xorshift64: what is wanted is only that hosts do not all speak at once.
TimeNs GroupReports::random_up_to(TimeNs limit) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return limit == 0 ? 0 : random_ % limit;
}

}  // namespace rocemu::dpdk_io
