#include "emulator/transport/interface/rss.h"

#include <span>

namespace rocemu::transport {
namespace {

// Each bit of the input that is set adds the 32 bits of the key that begin where it stands.
class Toeplitz {
 public:
  explicit Toeplitz(std::span<const uint8_t, RssHash::kKeyBytes> key) : key_(key) {}
  void add(std::span<const uint8_t> input) {
    for (const uint8_t byte : input) {
      for (int bit = 7; bit >= 0; --bit, ++at_)
        if ((byte >> bit & 1) != 0) hash_ ^= window();
    }
  }
  uint32_t hash() const { return hash_; }

 private:
  uint32_t window() const {
    uint64_t bits = 0;
    for (size_t i = 0; i < 5; ++i) bits = bits << 8 | key_[at_ / 8 + i];
    return static_cast<uint32_t>(bits >> (8 - at_ % 8));
  }
  std::span<const uint8_t, RssHash::kKeyBytes> key_;
  size_t at_ = 0;  // bits
  uint32_t hash_ = 0;
};

}  // namespace

uint32_t RssHash::of(const wire::FrameFields& frame) const {
  using namespace rss_field;
  constexpr uint8_t kTcp = 6;
  constexpr uint8_t kUdp = 17;
  const auto wanted = [this](bool has, uint32_t field) { return has && (fields & field) != 0; };
  const bool ipv4 = frame.ip_version == 4;
  const bool ipv6 = frame.ip_version == 6;
  const size_t ip_bytes = ipv4 ? 4 : 16;
  const bool tcp = frame.protocol == kTcp;
  const bool udp = frame.protocol == kUdp;
  static_assert(2 * 16 + 2 * 2 + sizeof(uint32_t) <= kKeyBytes);
  Toeplitz toeplitz(key);
  if (wanted(ipv4, kSourceIpv4) || wanted(ipv6, kSourceIpv6))
    toeplitz.add(std::span(frame.source_ip).first(ip_bytes));
  if (wanted(ipv4, kDestinationIpv4) || wanted(ipv6, kDestinationIpv6))
    toeplitz.add(std::span(frame.destination_ip).first(ip_bytes));
  if (wanted(tcp, kSourcePortTcp) || wanted(udp, kSourcePortUdp)) toeplitz.add(frame.source_port);
  if (wanted(tcp, kDestinationPortTcp) || wanted(udp, kDestinationPortUdp))
    toeplitz.add(frame.destination_port);
  return toeplitz.hash();
}

}  // namespace rocemu::transport
