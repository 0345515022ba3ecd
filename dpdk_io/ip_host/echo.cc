#include "dpdk_io/ip_host/echo.h"

namespace rocemu::dpdk_io {
namespace {

constexpr size_t kEchoBytes = 8;
constexpr uint8_t kRequest = 8;
constexpr uint8_t kReply = 0;
constexpr uint8_t kRequestV6 = 128;
constexpr uint8_t kReplyV6 = 129;

}  // namespace

bool is_echo_request(const IpPacket& packet) noexcept {
  const bool ipv4 = packet.destination.is_ipv4();
  return packet.protocol == (ipv4 ? kIpProtocolIcmp : kIpProtocolIcmpv6) &&
         packet.payload.size() >= kEchoBytes &&
         packet.payload[0] == (ipv4 ? kRequest : kRequestV6) && packet.payload[1] == 0;
}

std::optional<Frame> build_echo_reply(const IpPacket& request, const MacAddress& own_mac,
                                      const MacAddress& to_mac) {
  if (!has_right_checksum(request)) return std::nullopt;
  Frame message(request.payload.begin(), request.payload.end());
  message[0] = request.destination.is_ipv4() ? kReply : kReplyV6;
  return build_ip({own_mac, to_mac, request.destination, request.source, request.protocol},
                  message);
}

}  // namespace rocemu::dpdk_io
