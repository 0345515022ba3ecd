// The numbers of the protocol as types of their own, so that a PSN is never taken for a QPN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/net/ip_address.h"

namespace rocemu::wire {

// A packet sequence number: 24 bits, compared modulo 2^24 (IBTA vol 1, 9.7.2).
class Psn {
 public:
  static constexpr uint32_t kMask = 0xffffff;

  constexpr Psn() = default;
  constexpr explicit Psn(uint32_t value) : value_(value & kMask) {}

  constexpr uint32_t value() const { return value_; }
  constexpr bool operator==(const Psn&) const = default;

  constexpr Psn operator+(uint32_t n) const { return Psn(value_ + n); }
  constexpr Psn operator-(uint32_t n) const { return Psn(value_ - n); }
  constexpr Psn& operator++() { return *this = *this + 1; }

  // The number of PSNs by which this one lies ahead of `other`, in -2^23 .. 2^23-1.
  constexpr int32_t distance_from(Psn other) const {
    return static_cast<int32_t>((value_ - other.value_) << 8) >> 8;
  }
  constexpr bool before(Psn other) const { return distance_from(other) < 0; }
  constexpr bool after(Psn other) const { return distance_from(other) > 0; }

 private:
  uint32_t value_ = 0;
};

// A queue pair number: 24 bits.
struct Qpn {
  uint32_t value = 0;
  constexpr auto operator<=>(const Qpn&) const = default;
};

// The destination of multicast datagrams, whatever their group (IBTA vol 1, 10.5.2).
inline constexpr Qpn kMulticastQpn{0xffffff};

// Memory keys: opaque to the wire, an index and a tag to the device.
struct LKey {
  uint32_t value = 0;
  constexpr auto operator<=>(const LKey&) const = default;
};
struct RKey {
  uint32_t value = 0;
  constexpr auto operator<=>(const RKey&) const = default;
};

// A GID; for RoCE v2 an IP address (IBTA annex A17).
struct Gid : IpAddress {
  constexpr auto operator<=>(const Gid&) const = default;

  constexpr bool is_ipv4_mapped() const { return is_ipv4(); }
};

inline constexpr uint16_t kRoceUdpPort = 4791;
inline constexpr uint16_t kDefaultPkey = 0xffff;

}  // namespace rocemu::wire

template <>
struct std::hash<rocemu::wire::Gid> {
  size_t operator()(const rocemu::wire::Gid& gid) const noexcept {
    size_t value = 0xcbf29ce484222325u;
    for (uint8_t byte : gid.bytes) value = (value ^ byte) * 0x100000001b3u;
    return value;
  }
};
