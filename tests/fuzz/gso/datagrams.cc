#include "tests/fuzz/gso/datagrams.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/icrc.h"

namespace rocemu::fuzz {
namespace {

constexpr size_t kLongestPacketBytes = 70'000;  // longer than any IP packet
constexpr uint16_t kSizes[] = {0,    1,    2,    15,   16,   17,   20,    64,    272,  1040,
                               4095, 4096, 4112, 4240, 4300, 9000, 30000, 65507, 65535};

bool is_ipv4(const Bytes& headers) {
  return load_be16(&headers[kEthernetBytes - 2]) == kEtherTypeIpv4;
}

void write_lengths(Bytes& headers, size_t payload_bytes) {
  std::byte* const ip = &headers[kEthernetBytes];
  const auto udp_bytes = static_cast<uint32_t>(kUdpBytes + payload_bytes);
  if (is_ipv4(headers)) {
    store_be16(ip + 2, static_cast<uint32_t>(kIpv4Bytes) + udp_bytes);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, internet_checksum(ipv4_header_sum(ip)));
  } else {
    store_be16(ip + 4, udp_bytes);
  }
  store_be16(&headers[headers.size() - 4], udp_bytes);
}

void append_noise(Bytes& to, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    seed = seed * 1664525 + 1013904223;
    to.push_back(static_cast<std::byte>(seed >> 24));
  }
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

Bytes make_headers(bool ipv4, uint16_t identification, size_t payload_bytes) {
  Bytes headers(kEthernetBytes + (ipv4 ? kIpv4Bytes : kIpv6Bytes) + kUdpBytes);
  std::byte* const ip = &headers[kEthernetBytes];
  store_be16(ip - 2, ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  store_u8(ip, ipv4 ? kIpv4VersionAndLength : 0x60);
  store_u8(ip + (ipv4 ? 9 : 6), kIpProtocolUdp);
  if (ipv4) {
    store_be16(ip + 4, identification);
    store_be16(ip + 6, 0x4000);
  }
  store_be16(&headers[headers.size() - 6], wire::kRoceUdpPort);
  write_lengths(headers, payload_bytes);
  return headers;
}

Bytes sealed_payload(const Bytes& headers, uint16_t identification, size_t bytes, uint32_t seed) {
  Bytes own = headers;
  if (is_ipv4(own)) store_be16(&own[kEthernetBytes + 4], identification);
  write_lengths(own, bytes);
  append_noise(own, bytes, seed);
  wire::store_icrc(std::span(own).subspan(kEthernetBytes));
  return {own.begin() + static_cast<std::ptrdiff_t>(headers.size()), own.end()};
}

Arriving arbitrary(ByteSource& input, unsigned prefix_bytes, bool headers_come, bool ipv4) {
  Arriving made;
  const uint16_t identification = input.u16();
  const uint32_t seed = input.u8();
  const size_t step = std::max<size_t>(1, input.flag() ? input.pick(kSizes) : input.u8());
  size_t total = input.flag() ? input.pick(kSizes) : step * input.below(140) + input.below(20);
  made.segment_bytes = input.below(4) == 0 ? input.u16() : static_cast<unsigned>(step);
  if (input.flag()) made.segment_bytes = 0;
  made.headers = make_headers(ipv4, identification, total);
  total = std::min(total, kLongestPacketBytes);

  Bytes payload;
  made.sealed = made.segment_bytes == step && step >= kMinSealedBytes && input.flag();
  made.counts_up = made.sealed && input.flag();
  if (made.sealed) {
    // The last may be shorter, but not so short that it has no ICRC.
    for (uint16_t i = 0; payload.size() < total; ++i) {
      const size_t left = total - payload.size();
      const auto own = static_cast<uint16_t>(identification + (made.counts_up ? i : 0));
      append(payload, sealed_payload(made.headers, own,
                                     std::max(std::min(step, left), kMinSealedBytes), seed + i));
    }
  } else {
    append_noise(payload, total, seed);
  }

  made.packet.resize(prefix_bytes);
  if (headers_come) append(made.packet, made.headers);
  append(made.packet, payload);
  if (headers_come && input.below(8) == 0)
    for (uint32_t i = input.below(6); i > 0; --i)
      made.packet[prefix_bytes + input.u8() % made.headers.size()] = std::byte{input.u8()};
  if (input.below(8) == 0) {
    made.packet.resize(std::min<size_t>(made.packet.size(), input.u8()));
    made.sealed = false;
  }
  return made;
}

unsigned deliver(const mmsghdr& message, std::span<const std::byte> packet) {
  size_t done = 0;
  for (size_t i = 0; i < message.msg_hdr.msg_iovlen && done < packet.size(); ++i) {
    const iovec& part = message.msg_hdr.msg_iov[i];
    const size_t here = std::min(part.iov_len, packet.size() - done);
    std::memcpy(part.iov_base, packet.data() + done, here);
    done += here;
  }
  return static_cast<unsigned>(done);
}

}  // namespace rocemu::fuzz
