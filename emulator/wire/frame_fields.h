// The fields of any Ethernet frame that flows can be told apart by, in a form in which one
// comparison under a mask decides. Nothing is refused: what a frame does not have, or what its end
// cuts off, is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rocemu::wire {

// FrameFields are as the network has them, in its byte order. An IPv4 address stands in the first
// four bytes of its place.
struct FrameFields {
  std::array<uint8_t, 6> destination_mac{};
  std::array<uint8_t, 6> source_mac{};
  std::array<uint8_t, 2> ether_type{};  // behind the VLAN tag, if there is one
  std::array<uint8_t, 2> vlan_tci{};
  std::array<uint8_t, 16> source_ip{};
  std::array<uint8_t, 16> destination_ip{};
  std::array<uint8_t, 4> flow_label{};
  uint8_t protocol = 0;  // IPv4's, or IPv6's next header
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t ip_flags = 0;                  // the three bits of IPv4
  std::array<uint8_t, 2> source_port{};  // TCP's and UDP's; zero in a fragment but the first
  std::array<uint8_t, 2> destination_port{};
  uint8_t ip_version = 0;
  uint8_t tagged = 0;  // 1: there is a VLAN tag
  std::array<uint8_t, 2> reserved{};

  bool operator==(const FrameFields&) const = default;
};
static_assert(sizeof(FrameFields) == 64 && alignof(FrameFields) == 1);

FrameFields frame_fields(std::span<const std::byte> frame);

// True when `fields` has the bits of `value` wherever `mask` has a one.
inline bool matches(const FrameFields& fields, const FrameFields& value, const FrameFields& mask) {
  std::array<uint64_t, 8> f, v, m;
  std::memcpy(f.data(), &fields, sizeof fields);
  std::memcpy(v.data(), &value, sizeof value);
  std::memcpy(m.data(), &mask, sizeof mask);
  uint64_t differ = 0;
  for (size_t i = 0; i < f.size(); ++i) differ |= (f[i] ^ v[i]) & m[i];
  return differ == 0;
}

// What a frame carries behind its Ethernet header and all VLAN tags.
struct NetworkLayer {
  size_t offset_bytes = 0;
  uint16_t ether_type = 0;
};
// Precondition: the frame has an Ethernet header. A tag that is cut off ends the search.
NetworkLayer network_layer(std::span<const std::byte> frame);

// A datagram to the port of RoCE v2, whether what it holds is right or not.
bool is_roce(const FrameFields& fields);

// True when some receiver may take the frame for such a datagram: one that follows IPv6's extension
// headers and any number of tags as well, and that puts fragments together.
bool may_be_roce(std::span<const std::byte> frame);

}  // namespace rocemu::wire
