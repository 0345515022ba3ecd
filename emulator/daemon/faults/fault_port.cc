#include "emulator/daemon/faults/fault_port.h"

#include <rte_mbuf.h>

#include <algorithm>

#include "dpdk_io/port/frame_pool.h"
#include "emulator/daemon/faults/queue_taps.h"
#include "emulator/transport/interface/observer.h"
#include "emulator/wire/mad.h"
#include "emulator/wire/packet.h"

namespace rocemu::daemon {
namespace {

// So much may leave at once, at whatever rate: a burst of small messages is not torn apart.
constexpr uint64_t kBurstNs = 1'000'000;

std::span<const std::byte> bytes_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const std::byte*), rte_pktmbuf_data_len(frame)};
}

}  // namespace

void FaultPort::set_needs(uint64_t now_ns, const FaultNeeds& needs) {
  needs_ = needs;
  if (inner_.storm(now_ns, needs.holds_received, needs.holds_sent)) needs_.holds_received = false;
}

// Frames that are none of RoCE, and those of the connection manager, are nobody's QP's.
bool FaultPort::passes(const rte_mbuf* frame) noexcept {
  wire::Packet packet;
  if (wire::parse_frame(bytes_of(frame), packet) != wire::ParseError::none) return true;
  const wire::Qpn qpn = packet.bth.destination_qp;
  const Who who = who_has(hca_, qpn);
  faults_.on_packet(who);
  return qpn == wire::kGsiQpn || !faults_.active(fault::Kind::no_answer, who);
}

void FaultPort::lose(std::span<rte_mbuf*> frames, bool arrives) noexcept {
  if (transport::Observer* const observer = hca_.endpoint().observer())
    for (const rte_mbuf* frame : frames) observer->on_fault_loss(bytes_of(frame), arrives);
  dpdk_io::FramePool::free_bulk(frames);
}

unsigned FaultPort::receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (needs_.holds_received) return 0;
  const unsigned count = inner_.receive(now_ns, burst);
  if (!needs_.drops_received && !needs_.packets) return count;
  unsigned kept = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (!needs_.drops_received && passes(burst[i])) {
      burst[kept++] = burst[i];
    } else {
      lose(burst.subspan(i, 1), true);
    }
  }
  return kept;
}

void FaultPort::count_sent(std::span<rte_mbuf*> burst) noexcept {
  const Who port{.device = hca_.config().index};
  for (size_t i = 0; i < burst.size(); ++i) faults_.on_packet(port);
}

// The number of frames of the burst that may leave now, at the rate.
unsigned FaultPort::allowed(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  constexpr uint64_t kBitsPerByte = 8;
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  free_at_ns_ = std::max(free_at_ns_, now_ns);
  unsigned count = 0;
  while (count < burst.size() && free_at_ns_ <= now_ns + kBurstNs)
    free_at_ns_ +=
        rte_pktmbuf_data_len(burst[count++]) * kBitsPerByte * kNsPerSecond / needs_.rate_bits_per_s;
  return count;
}

unsigned FaultPort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (needs_.holds_sent) return 0;
  if (needs_.rate_bits_per_s > 0) burst = burst.first(allowed(now_ns, burst));
  if (needs_.packets) count_sent(burst);
  if (needs_.drops_sent) {
    lose(burst, false);
    return static_cast<unsigned>(burst.size());
  }
  return inner_.transmit(now_ns, burst);
}

}  // namespace rocemu::daemon
