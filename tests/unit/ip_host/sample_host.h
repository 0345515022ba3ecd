// A host with an IPv4 and an IPv6 address, and frames of a neighbour. The frames in hexadecimal
// were made with scapy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/net/text.h"
#include "base/time.h"
#include "dpdk_io/ip_host/ip_host.h"

namespace rocemu::dpdk_io {

inline constexpr TimeNs kSecond = 1'000'000'000;
inline constexpr MacAddress kOwnMac = {2, 0, 0, 0, 0, 1};
inline constexpr MacAddress kPeerMac = {2, 0, 0, 0, 0, 2};

using Frames = std::vector<Frame>;

inline IpAddress ip(const std::string& text) { return parse_ip_address(text).value(); }

inline IpSettings sample_settings() {
  return {{{ip("10.0.0.1"), 24}, {ip("fd00::1"), 64}}, {ip("10.0.0.254"), ip("fd00::fe")}};
}

inline Frame from_hex(std::string_view text) {
  Frame frame;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    frame.push_back(static_cast<uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  return frame;
}

// Pads the frame as Ethernet does.
inline Frame padded(Frame frame) {
  pad(frame);
  return frame;
}

inline Frames sent_by(IpHost& host) {
  Frames frames;
  while (host.wants_to_send()) frames.push_back(host.next_frame());
  return frames;
}

inline constexpr std::string_view kArpRequest =
    "ffffffffffff020000000002080600010800060400010200000000020a0000020000000000000a000001";
inline constexpr std::string_view kArpReply =
    "020000000002020000000001080600010800060400020200000000010a0000010200000000020a000002";
inline constexpr std::string_view kSolicitation =
    "3333ff00000102000000000286dd6000000000203afffd000000000000000000000000000002ff0200000000000000"
    "00"
    "0001ff00000187007d9700000000fd0000000000000000000000000000010101020000000002";
inline constexpr std::string_view kAdvertisement =
    "02000000000202000000000186dd6000000000203afffd000000000000000000000000000001fd0000000000000000"
    "0000"
    "000000000288001c9c60000000fd0000000000000000000000000000010201020000000001";
inline constexpr std::string_view kPing =
    "02000000000102000000000208004500001f00004000400126dc0a0000020a00000108002498000100026f6464";
inline constexpr std::string_view kPong =
    "02000000000202000000000108004500001f00004000400126dc0a0000010a00000200002c98000100026f6464";
inline constexpr std::string_view kPing6 =
    "02000000000102000000000286dd60000000000b3a40fd000000000000000000000000000002fd0000000000000000"
    "000000"
    "000000018000b24d000100026f6464";
inline constexpr std::string_view kPong6 =
    "02000000000202000000000186dd60000000000b3a40fd000000000000000000000000000001fd0000000000000000"
    "000000"
    "000000028100b14d000100026f6464";

}  // namespace rocemu::dpdk_io
