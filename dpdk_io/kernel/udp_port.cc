#include "dpdk_io/kernel/udp_port.h"

#include <rte_mbuf.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include "dpdk_io/kernel/socket_buffers.h"

namespace rocemu::dpdk_io {

UdpPort::UdpPort(std::span<const LocalAddress> addresses, uint16_t udp_port, FramePool& pool,
                 const IdentificationSeal& seal)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  for (const LocalAddress& local : addresses) {
    sockets_.push_back(
        std::make_unique<UdpSocket>(local.address, udp_port, local.interface_index, pool, seal));
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sockets_.back()->fd(), &event) != 0)
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

unsigned UdpPort::receive_buffer_bytes() const noexcept {
  unsigned least = UINT_MAX;
  for (const auto& socket : sockets_) least = std::min(least, socket->receive_buffer_bytes());
  return least;
}

unsigned UdpPort::receive(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  unsigned count = 0;
  for (size_t i = 0; i < sockets_.size(); ++i)
    count += sockets_[(first_asked_ + i) % sockets_.size()]->receive(burst.subspan(count), stats_);
  first_asked_ = (first_asked_ + 1) % sockets_.size();
  return count;
}

unsigned UdpPort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  unsigned taken = 0;
  while (taken < burst.size()) {
    const auto socket = std::ranges::find_if(
        sockets_, [&](const auto& candidate) { return candidate->can_send(burst[taken]); });
    if (socket == sockets_.end()) {
      ++stats_.dropped(DropReason::malformed);
      FramePool::free(burst[taken++]);
      continue;
    }
    unsigned end = taken + 1;
    while (end < burst.size() && (*socket)->can_send(burst[end])) ++end;
    const unsigned sent = (*socket)->send(now_ns, burst.subspan(taken, end - taken), stats_);
    if (sent == 0) break;
    taken += sent;
  }
  return taken;
}

const PortStats& UdpPort::stats() const noexcept {
  sum_ = stats_;
  for (const auto& socket : sockets_)
    sum_.dropped(DropReason::queue_full) += overflows(socket->fd());
  return sum_;
}

bool UdpPort::has_work() const noexcept {
  return std::ranges::any_of(sockets_, [](const auto& socket) { return socket->has_work(); });
}

int UdpPort::poll_fd() const noexcept {
  return sockets_.size() == 1 ? sockets_.front()->fd() : epoll_.get();
}

}  // namespace rocemu::dpdk_io
