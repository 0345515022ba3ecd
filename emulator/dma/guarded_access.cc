#include "emulator/dma/guarded_access.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace rocemu::dma {

namespace guard {

thread_local Place place;

}  // namespace guard

namespace {

// The signal is not blocked while this runs (SA_NODEFER), so that nothing has to be undone after
// the jump. For a fault that is none of ours the default action is put back, and the instruction
// runs into it again.
void on_fault(int signal_number) {
  guard::Place& place = guard::place;
  if (!place.inside) {
    std::signal(signal_number, SIG_DFL);
    return;
  }
  place.inside = false;
  siglongjmp(place.back_to, 1);
}

// memcpy has an order of its own, so the end is left to stores of its own behind a release fence.
// Another one is in front of all, as what was written before, the end of a message among it, has to
// be seen first. On x86 these are orders to the compiler alone, since the processor shows stores
// after all stores before them, those of a string instruction too (Intel SDM vol 3, 8.2.4).
void copy_in_order(std::byte* to, const std::byte* from, size_t length_bytes) {
  constexpr size_t kEnd = sizeof(uint64_t);
  std::atomic_thread_fence(std::memory_order_release);
  if (length_bytes >= kEnd) {
    std::memcpy(to, from, length_bytes - kEnd);
    to += length_bytes - kEnd;
    from += length_bytes - kEnd;
    length_bytes = kEnd;
    std::atomic_thread_fence(std::memory_order_release);
    if (reinterpret_cast<uintptr_t>(to) % kEnd == 0) {
      uint64_t end;
      std::memcpy(&end, from, kEnd);
      *reinterpret_cast<volatile uint64_t*>(to) = end;
      return;
    }
  }
  for (size_t i = 0; i < length_bytes; ++i) {
    if (i + 1 == length_bytes) std::atomic_thread_fence(std::memory_order_release);
    static_cast<volatile std::byte*>(to)[i] = from[i];
  }
}

}  // namespace

void install_access_guard() {
  struct sigaction action = {};
  action.sa_handler = &on_fault;
  action.sa_flags = SA_NODEFER;
  if (::sigaction(SIGBUS, &action, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "sigaction");
}

bool guarded_read(std::byte* to, const std::byte* mapped, size_t length_bytes) noexcept {
  return guarded([=] { std::memcpy(to, mapped, length_bytes); });
}

bool guarded_write(std::byte* mapped, const std::byte* from, size_t length_bytes) noexcept {
  return guarded([=] { copy_in_order(mapped, from, length_bytes); });
}

}  // namespace rocemu::dma
