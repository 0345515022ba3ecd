// The headers of a RoCEv2 frame as validated values (IBTA vol 1 chapter 9, annex A17).
// Each is a plain value in host order; packet.h makes them from bytes, build.h bytes from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/net/headers.h"
#include "emulator/wire/types.h"

namespace rocemu::wire {

inline constexpr size_t kBthBytes = 12;
inline constexpr size_t kFethBytes = 4;
inline constexpr size_t kRethBytes = 16;
inline constexpr size_t kAethBytes = 4;
inline constexpr size_t kAtomicEthBytes = 28;
inline constexpr size_t kAtomicAckEthBytes = 8;
inline constexpr size_t kDethBytes = 8;
inline constexpr size_t kXrcEthBytes = 4;
inline constexpr size_t kImmBytes = 4;
inline constexpr size_t kIethBytes = 4;
inline constexpr size_t kCnpReservedBytes = 16;  // the payload of a CNP
inline constexpr size_t kIcrcBytes = 4;
inline constexpr size_t kMaxMtuBytes = 4096;
// The most that may stand before the payload of a packet that says where it belongs (selective.h).
inline constexpr size_t kMaxPlaceBytes = kRethBytes;

struct Ethernet {
  MacAddress destination{};
  MacAddress source{};
  std::optional<uint16_t> vlan_tci;  // the 802.1Q tag's, when there is one
};

// IPv4 when both GIDs are IPv4-mapped, else IPv6.
struct Ip {
  Gid source{};
  Gid destination{};
  uint8_t traffic_class = 0;                    // TOS for IPv4: DSCP and ECN
  uint8_t hop_limit = 64;                       // TTL for IPv4
  uint32_t flow_label = 0;                      // IPv6 only, 20 bits
  uint16_t identification = 0;                  // IPv4 only
  uint16_t flags_fragment = kIpv4DontFragment;  // IPv4 only: flags and fragment offset
};

// The network has marked the packet instead of dropping it: CE (RFC 3168, 5).
inline bool congestion_met(const Ip& ip) { return (ip.traffic_class & 3) == 3; }

struct Udp {
  uint16_t source_port = 0;
  uint16_t destination_port = kRoceUdpPort;
  uint16_t checksum = 0;
};

struct Bth {
  uint8_t opcode = 0;
  bool solicited = false;
  bool mig_req = false;
  uint8_t pad_bytes = 0;  // 0..3
  uint8_t version = 0;    // TVer, 0
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint8_t reserved6 = 0;  // the six bits beside FECN and BECN; masked in the ICRC
  Qpn destination_qp{};
  bool ack_request = false;
  uint8_t reserved7 = 0;  // the seven bits beside AckReq
  Psn psn{};
};

// What a FLUSH is for, and of what (annex A19): verbs::placement and verbs::Selectivity, with the
// bits that are reserved.
struct Feth {
  uint8_t placement = 0;    // 4 bits
  uint8_t selectivity = 0;  // 2 bits
};

struct Reth {
  uint64_t virtual_address = 0;
  RKey rkey{};
  uint32_t length_bytes = 0;
};

struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
};

struct AtomicEth {
  uint64_t virtual_address = 0;
  RKey rkey{};
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
};

struct Deth {
  uint32_t qkey = 0;
  Qpn source_qp{};
};

// ReceivePlace says where a SEND's payload belongs (selective.h): in the receive of that number,
// counted by the messages that take one, from the packet of that number on.
struct ReceivePlace {
  uint32_t receive = 0;
  uint32_t packet = 0;
};

// A frame's opcode alone decides which of these it has (opcode.h), but for the last one.
struct ExtendedHeaders {
  Feth feth{};
  Reth reth{};
  Aeth aeth{};
  AtomicEth atomic{};
  uint64_t atomic_original = 0;  // AtomicAckETH
  Deth deth{};
  Qpn xrc_srq{};
  uint32_t immediate = 0;  // as it stands in the frame, network order untouched (ibv's imm_data)
  RKey invalidate{};       // IETH
  ReceivePlace receive_place{};
};

// AETH syndromes (IBTA vol 1, table 47 and 48).
namespace syndrome {
inline constexpr uint8_t kAck = 0x1f;  // an ACK that carries no credit count
inline constexpr uint8_t kRnr = 0x20;  // | the 5-bit timer
inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;
inline constexpr uint8_t kNakInvalidRdRequest = 0x64;

constexpr bool is_ack(uint8_t s) { return (s & 0xe0) == 0x00; }
constexpr bool is_rnr(uint8_t s) { return (s & 0xe0) == 0x20; }
constexpr bool is_nak(uint8_t s) { return (s & 0xe0) == 0x60; }
}  // namespace syndrome

}  // namespace rocemu::wire
