#include "emulator/dma/guarded_access.h"

#include <cerrno>
#include <csignal>
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

}  // namespace

void install_access_guard() {
  struct sigaction action = {};
  action.sa_handler = &on_fault;
  action.sa_flags = SA_NODEFER;
  if (::sigaction(SIGBUS, &action, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "sigaction");
}

bool guarded_copy(std::byte* to, const std::byte* from, size_t length_bytes) noexcept {
  return guarded([=] { std::memcpy(to, from, length_bytes); });
}

}  // namespace rocemu::dma
