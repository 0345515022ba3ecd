// Receive side scaling: which of several receive queues a frame goes to, by Toeplitz' hash over
// some of its fields (ibv_create_qp_ex(3), struct ibv_rx_hash_conf).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/wire/frame_fields.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

// enum ibv_rx_hash_fields
namespace rss_field {
inline constexpr uint32_t kSourceIpv4 = 1u << 0;
inline constexpr uint32_t kDestinationIpv4 = 1u << 1;
inline constexpr uint32_t kSourceIpv6 = 1u << 2;
inline constexpr uint32_t kDestinationIpv6 = 1u << 3;
inline constexpr uint32_t kSourcePortTcp = 1u << 4;
inline constexpr uint32_t kDestinationPortTcp = 1u << 5;
inline constexpr uint32_t kSourcePortUdp = 1u << 6;
inline constexpr uint32_t kDestinationPortUdp = 1u << 7;
inline constexpr uint32_t kAll = 0xff;
}  // namespace rss_field

struct RssHash {
  static constexpr size_t kKeyBytes = 40;
  std::array<uint8_t, kKeyBytes> key{};
  uint32_t fields = 0;  // rss_field

  // The hash over the fields that the frame has, in this order: source and destination address,
  // source and destination port.
  uint32_t of(const wire::FrameFields& frame) const;
};

// The QPs that share the frames of a flow.
struct Receivers {
  std::vector<wire::Qpn> qpns;  // at least one; a power of two of them
  RssHash hash;

  wire::Qpn choose(const wire::FrameFields& frame) const {
    return qpns.size() == 1 ? qpns.front() : qpns[hash.of(frame) & (qpns.size() - 1)];
  }
};

}  // namespace rocemu::transport
