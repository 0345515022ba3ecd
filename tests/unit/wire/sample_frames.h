// Frames made for tests: one description with sensible values everywhere, changed as a test needs.
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/wire/build.h"

namespace rocemu::wire::test {

using Frame = std::vector<std::byte>;

// FrameValues are what build_frame takes, as one value. No field that a frame may carry is zero, so
// that one which is forgotten or misplaced shows.
struct FrameValues {
  Ethernet ethernet;
  Ip ip;
  Udp udp;
  Bth bth;
  ExtendedHeaders ext;
  std::vector<std::byte> payload;

  Frame build() const { return build_frame(ethernet, ip, udp, bth, ext, payload); }
};

enum class Network { ipv4, ipv6, ipv4_vlan, ipv6_vlan };
inline constexpr Network kNetworks[] = {Network::ipv4, Network::ipv6, Network::ipv4_vlan,
                                        Network::ipv6_vlan};

bool is_ipv4(Network network);

// A frame that parse_frame accepts: the payload is as long as asked for where the opcode may have
// one (a CNP: its 16 bytes), and the pad fits.
FrameValues sample(Network network, uint8_t opcode, size_t payload_bytes = 100);

inline FrameValues sample(Network network, Operation operation, size_t payload_bytes = 100) {
  return sample(network, bth_opcode(Transport::rc, operation), payload_bytes);
}

// These say where the IP header and the BTH of a sample start.
size_t l3_offset_bytes(Network network);
size_t bth_offset_bytes(Network network);

// Makes the IPv4 header checksum right again after a change. Precondition: an IPv4 sample.
void fix_ipv4_checksum(Frame& frame, Network network);

}  // namespace rocemu::wire::test
