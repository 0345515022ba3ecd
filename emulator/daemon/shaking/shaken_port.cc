#include "emulator/daemon/shaking/shaken_port.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <functional>

#include "dpdk_io/port/frame_pool.h"

namespace rocemu::daemon {

ShakenPort::~ShakenPort() {
  while (!held_.empty()) dpdk_io::FramePool::free(held_.pop().item);
}

unsigned ShakenPort::receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  shaking_.agenda().tick(now_ns);
  if (!shaking_.delays_arrivals()) return port_.receive(now_ns, burst);
  take_in(now_ns);
  unsigned count = 0;
  while (count < burst.size() && held_.next() <= now_ns) burst[count++] = held_.pop().item;
  return count;
}

void ShakenPort::take_in(uint64_t now_ns) noexcept {
  std::array<rte_mbuf*, 32> frames;
  while (held_.size() + frames.size() <= kMaxHeld) {
    const unsigned count = port_.receive(now_ns, frames);
    for (unsigned i = 0; i < count; ++i) {
      const std::span bytes(rte_pktmbuf_mtod(frames[i], const std::byte*),
                            rte_pktmbuf_data_len(frames[i]));
      held_.push(shaking_.arrival_due(now_ns, bytes), std::move(frames[i]));
    }
    if (count < frames.size()) return;
  }
}

uint64_t ShakenPort::next_arrival_ns() const noexcept {
  return std::min({port_.next_arrival_ns(), held_.next(), shaking_.agenda().next()});
}

}  // namespace rocemu::daemon
