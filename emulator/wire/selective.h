// The extension of RoCEv2 that selective repeat needs, between two ends that both have it
// (docs/loss-recovery.md). It lives in bits that the specification reserves, "transmitted as 0 and
// ignored on receive" (IBTA vol 1, 9.2), so that a peer without it never notices.
//
//   every packet     Bth::reserved7 & kUnderstood: its sender takes the forms below
//                                    & kAnyOrder: its sender expects READ responses in any order
//   SEND, WRITE      & kPlaced: the payload begins with a header that says where the rest belongs,
//                    whatever has come before it:
//                      WRITE MIDDLE and LAST  the RETH, of this packet and what follows it
//                      WRITE FIRST and ONLY   nothing: their RETH says it
//                      SEND                   ReceivePlace, 8 bytes
//   READ response    & kPlaced, ONLY, with the AETH of a NAK for a sequence error: a selective NAK.
//                    The PSN is the expected one; bit i of the payload (the lowest of the first
//                    byte is bit 0) stands for the PSN i + 1 behind it, and is set when that has
//                    been taken.
//
// To a dissector that does not know it, all of this is a frame of its opcode with a payload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/wire/packet.h"

namespace rocemu::wire::selective {

inline constexpr uint8_t kUnderstood = 0x01;
inline constexpr uint8_t kPlaced = 0x02;
inline constexpr uint8_t kAnyOrder = 0x04;

inline constexpr size_t kReceivePlaceBytes = 8;

constexpr bool is_understood_by_sender(const Bth& bth) {
  return (bth.reserved7 & kUnderstood) != 0;
}
constexpr bool takes_any_order(const Bth& bth) { return (bth.reserved7 & kAnyOrder) != 0; }
// Both bits are needed: a sender that does not know this may have anything in one that it should
// not set.
constexpr bool is_placed(const Bth& bth) {
  return (bth.reserved7 & (kPlaced | kUnderstood)) == (kPlaced | kUnderstood);
}

// True for a NAK with a payload that names what has been taken behind it.
bool is_selective_nak(const Packet& packet);

// The number of bytes that a placed packet of this opcode has before its payload: 0 but over RC and
// XRC.
size_t place_bytes(uint8_t opcode);
// Writes those bytes. Precondition: room for place_bytes(opcode).
void store_place(std::byte* to, uint8_t opcode, const ExtendedHeaders& ext);
// Takes those bytes off the payload of a placed packet, into its extended headers. False: the
// payload is too short, or longer than the largest MTU.
bool take_place(Packet& packet);

}  // namespace rocemu::wire::selective
