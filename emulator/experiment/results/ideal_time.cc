#include "emulator/experiment/results/ideal_time.h"

#include <algorithm>

#include "base/net/headers.h"
#include "emulator/wire/headers.h"

namespace rocemu::experiment {

namespace {

// Times are in parts of a nanosecond here, so that many packets are no more than their bytes.
constexpr unsigned kPartBits = 10;
constexpr uint64_t parts(TimeNs ns) { return ns << kPartBits; }

constexpr uint32_t kPlainBytes =
    kEthernetBytes + kIpv4Bytes + kUdpBytes + wire::kBthBytes + wire::kIcrcBytes;

uint64_t sending(uint64_t bytes, const network::LinkSettings& link) {
  return static_cast<uint64_t>(
      (static_cast<unsigned __int128>(bytes) * 8'000'000'000 << kPartBits) / link.rate_bits_per_s);
}

uint32_t padded(uint64_t bytes) { return static_cast<uint32_t>((bytes + 3) / 4 * 4); }

}  // namespace

IdealTime::IdealTime(const network::Description& network, const Nics& nics)
    : topology_(network.topology),
      routes_(network.topology),
      hosts_(network.topology.hosts()),
      nics_(nics),
      overhead_bytes_(network.settings.overhead_bytes) {}

std::vector<network::LinkSettings> IdealTime::path(uint32_t from, uint32_t to) const {
  std::vector<network::LinkSettings> links;
  uint32_t node = hosts_[from];
  while (node != hosts_[to]) {
    const auto ports =
        topology_.nodes[node].is_switch ? routes_.next_hops(node, to) : routes_.ports_at(node);
    if (ports.empty()) break;
    const network::Topology::Link& link = topology_.links[network::link_of(ports.front())];
    links.push_back(link.settings);
    node = node == link.a ? link.b : link.a;
  }
  return links;
}

// Packets follow each other over the cables. On each cable the first one leaves when it has come;
// the second when it has come and the first has left; those of full size then leave one after the
// other as fast as this cable, or the slowest before it, lets them; and the last one, which may be
// shorter, behind them.
uint64_t IdealTime::arrival(const std::vector<network::LinkSettings>& path,
                            const Message& message) const {
  const auto& [bytes, mtu, first_header_bytes, header_bytes] = message;
  const uint64_t packets = bytes == 0 ? 1 : (bytes - 1) / mtu + 1;
  const uint64_t last_bytes = padded(bytes - (packets - 1) * mtu);
  const uint64_t middle = packets > 2 ? packets - 2 : 0;
  uint64_t first = 0, second = 0, full = 0, last = 0;  // times of leaving a cable's near end
  for (const network::LinkSettings& link : path) {
    const uint64_t first_size = on_cable(first_header_bytes + (packets > 1 ? mtu : last_bytes));
    const uint64_t full_size = on_cable(header_bytes + mtu);
    first += sending(first_size, link);
    if (middle > 0) {
      second = std::max(first, second) + sending(full_size, link);
      full = std::max(full + (middle > 1 ? sending(full_size, link) : 0),
                      second + sending((middle - 1) * full_size, link));
    }
    if (packets > 1)
      last = std::max({first, middle > 0 ? full : 0, last}) +
             sending(on_cable(header_bytes + last_bytes), link);
    // Each goes on from the near end of the cable to its far end.
    for (uint64_t* const at : {&first, &second, &full, &last}) *at += parts(link.delay_ns);
  }
  return packets > 1 ? last : first;
}

TimeNs IdealTime::of(uint32_t from, uint32_t to, uint64_t bytes, Verb verb) const {
  constexpr uint32_t kAckBytes = kPlainBytes + wire::kAethBytes;
  const auto there = path(from, to);
  const auto back = path(to, from);
  const uint32_t mtu = nics_.path_mtu_bytes(from, to);
  uint64_t all = 0;
  switch (verb) {
    case Verb::read:
      all = arrival(there, {0, mtu, kPlainBytes + wire::kRethBytes, 0}) +
            arrival(back, {bytes, mtu, kAckBytes, kPlainBytes});
      break;
    case Verb::send:
      all = arrival(there, {bytes, mtu, kPlainBytes, kPlainBytes}) +
            arrival(back, {0, mtu, kAckBytes, 0});
      break;
    case Verb::write:
    case Verb::write_imm:
      all = arrival(there, {bytes, mtu, kPlainBytes + wire::kRethBytes, kPlainBytes}) +
            arrival(back, {0, mtu, kAckBytes, 0});
      break;
  }
  return std::max<TimeNs>(1, all >> kPartBits);
}

}  // namespace rocemu::experiment
