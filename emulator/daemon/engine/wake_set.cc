#include "emulator/daemon/engine/wake_set.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>

namespace rocemu::daemon {
namespace {

void add(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace

WakeSet::WakeSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

void WakeSet::add_port(int fd) { add(epoll_.get(), fd, EPOLLIN); }

void WakeSet::remove_port(int fd) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool WakeSet::wait(TimeNs timeout_ns) noexcept {
  constexpr int kEvents = 64;
  constexpr TimeNs kNsPerS = 1'000'000'000;
  constexpr TimeNs kNsPerMs = 1'000'000;
  epoll_event events[kEvents];
  if (has_pwait2_) {
    timespec timeout{static_cast<time_t>(timeout_ns / kNsPerS),
                     static_cast<long>(timeout_ns % kNsPerS)};
    const timespec* limit = timeout_ns == kNever ? nullptr : &timeout;
    const int woken = ::epoll_pwait2(epoll_.get(), events, kEvents, limit, nullptr);
    if (woken >= 0 || errno != ENOSYS) return woken != 0;
    has_pwait2_ = false;
  }
  const int timeout_ms =
      timeout_ns == kNever
          ? -1
          : static_cast<int>(std::min<TimeNs>((timeout_ns + kNsPerMs - 1) / kNsPerMs, INT_MAX));
  return ::epoll_wait(epoll_.get(), events, kEvents, timeout_ms) != 0;
}

WakeFd::WakeFd(WakeSet& set) : set_(set), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
  add(set_.epoll_.get(), fd_.get(), EPOLLIN | EPOLLET);
}

// The eventfd is taken out by hand: a program may have it open still, and closing ours would leave
// it in the set.
WakeFd::~WakeFd() { ::epoll_ctl(set_.epoll_.get(), EPOLL_CTL_DEL, fd_.get(), nullptr); }

void WakeFd::ring() const noexcept {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the set has been woken before.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof(one));
}

}  // namespace rocemu::daemon
