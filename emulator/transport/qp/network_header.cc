#include "emulator/transport/qp/network_header.h"

#include <array>

#include "emulator/transport/qp/payload.h"

namespace rocemu::transport {

namespace {

constexpr std::array<std::byte, kGrhBytes - kIpv4Bytes> kBeforeIpv4{};
// RoCE has no service level. The completion has to tell which header stands before the data (annex
// A17.4.5.1), and programs look for that in this field as ConnectX fills it: bit 3 for RoCE v2,
// then 1 for IPv6, 2 for IPv4.
constexpr uint8_t kRoceOverUdpIpv6 = 9;
constexpr uint8_t kRoceOverUdpIpv4 = 10;

}  // namespace

wire::HeaderTemplate headers_of_answer(const wire::Packet& packet, uint8_t traffic_class) {
  const bool by_socket = packet.ethernet.source == MacAddress{};
  return wire::HeaderTemplate(
      {.destination = packet.ethernet.source,
       .source = packet.ethernet.destination,
       .vlan_tci = packet.ethernet.vlan_tci},
      {.source = packet.ip.destination,
       .destination = packet.ip.source,
       .traffic_class = traffic_class},
      {.source_port = by_socket ? wire::kRoceUdpPort : packet.udp.source_port});
}

// An IPv6 header as it is, an IPv4 header in the last 20 bytes, behind zeros (annex A17.4.5.2).
bool scatter_grh(const QpContext& context, const ReceiveWork& receive, const wire::Packet& packet) {
  const PdHandle pd = context.resources.receive_pd();
  const wire::Psn psn = packet.bth.psn;
  if (!packet.ip.destination.is_ipv4_mapped())
    return scatter(context, pd, receive, 0, packet.l3.first(kIpv6Bytes), psn);
  return scatter(context, pd, receive, 0, kBeforeIpv4, psn) &&
         scatter(context, pd, receive, kBeforeIpv4.size(), packet.l3.first(kIpv4Bytes), psn);
}

uint8_t grh_service_level(const wire::Packet& packet) {
  return packet.ip.destination.is_ipv4_mapped() ? kRoceOverUdpIpv4 : kRoceOverUdpIpv6;
}

}  // namespace rocemu::transport
