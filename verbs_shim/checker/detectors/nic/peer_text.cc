#include "verbs_shim/checker/detectors/nic/peer_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {

std::string peer_text(uint32_t qpn, uint32_t device) {
  return "QP " + qpn_text(qpn) + " of rocemu" + std::to_string(device);
}

std::string peer_text(const rocemu_inspect_qp_reply& facts) {
  return peer_text(facts.peer_qp_num, facts.peer_device);
}

bool is_ipv4(const uint8_t (&gid)[16]) {
  return std::all_of(gid, gid + 10, [](uint8_t byte) { return byte == 0; }) && gid[10] == 0xff &&
         gid[11] == 0xff;
}

bool is_link_local(const uint8_t (&gid)[16]) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

bool is_zero(const uint8_t (&gid)[16]) {
  return std::all_of(std::begin(gid), std::end(gid), [](uint8_t byte) { return byte == 0; });
}

std::string gid_text(const uint8_t (&gid)[16]) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_ipv4(gid);
  inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, text.data(), text.size());
  return text.data();
}

uint32_t mtu_bytes(uint32_t mtu) { return mtu == 0 || mtu > 5 ? 0 : 128u << mtu; }

std::string time_text(uint64_t time_ns) {
  constexpr double kMicrosecond = 1e3;
  constexpr double kMillisecond = 1e6;
  constexpr double kSecond = 1e9;
  const auto ns = static_cast<double>(time_ns);
  std::array<char, 32> text{};
  if (ns < kMillisecond) {
    std::snprintf(text.data(), text.size(), "%.3g us", ns / kMicrosecond);
  } else if (ns < kSecond) {
    std::snprintf(text.data(), text.size(), "%.3g ms", ns / kMillisecond);
  } else {
    std::snprintf(text.data(), text.size(), "%.3g s", ns / kSecond);
  }
  return text.data();
}

}  // namespace rocemu::check
