// The description in front of each packet of a packet socket with PACKET_VNET_HDR, either way:
// struct virtio_net_hdr of linux/virtio_net.h, which is no C++.
#pragma once

#include <cstdint>

namespace rocemu::dpdk_io {

struct PacketDescription {
  static constexpr unsigned kBytes = 10;
  static constexpr uint8_t kNeedsChecksum = 1;  // VIRTIO_NET_HDR_F_NEEDS_CSUM
  static constexpr uint8_t kGsoUdpL4 = 5;       // VIRTIO_NET_HDR_GSO_UDP_L4

  uint8_t flags;
  uint8_t gso_type;
  uint16_t hdr_len;
  uint16_t gso_size;
  uint16_t csum_start;
  uint16_t csum_offset;
};
static_assert(sizeof(PacketDescription) == PacketDescription::kBytes);

}  // namespace rocemu::dpdk_io
