#include "emulator/dma/guarded_access.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>

#ifdef __SANITIZE_THREAD__
// Of its runtime library (tsan_interface_ann.cpp); no header of the compiler has them.
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace rocemu::dma {

namespace guard {

thread_local Place place;

#ifdef __SANITIZE_THREAD__
Unwatched::Unwatched() noexcept { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
Unwatched::~Unwatched() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
#endif

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

// Copies all, its end by one store after all else, if the end is a number that lies as such numbers
// do. memcpy has an order of its own, hence the release fence: on x86 an order to the compiler
// alone, since the processor shows stores after all stores before them, those of a string
// instruction too (Intel SDM vol 3, 8.2.4).
template <class Number>
bool copy_with_end(std::byte* to, const std::byte* from, size_t length_bytes) {
  if (length_bytes < sizeof(Number)) return false;
  const size_t before = length_bytes - sizeof(Number);
  if (reinterpret_cast<uintptr_t>(to + before) % sizeof(Number) != 0) return false;
  Number end;
  std::memcpy(&end, from + before, sizeof end);
  std::memmove(to, from, before);
  std::atomic_thread_fence(std::memory_order_release);
  *reinterpret_cast<volatile Number*>(to + before) = end;
  return true;
}

// What a program waits for at the end of a message, or as all of it, is seen whole and last: an
// aligned number, or the last byte.
void copy_in_order(std::byte* to, const std::byte* from, size_t length_bytes) {
  // What was written before, the end of a message among it, has to be seen first.
  std::atomic_thread_fence(std::memory_order_release);
  copy_with_end<uint64_t>(to, from, length_bytes) ||
      copy_with_end<uint32_t>(to, from, length_bytes) ||
      copy_with_end<uint16_t>(to, from, length_bytes) ||
      copy_with_end<uint8_t>(to, from, length_bytes);
}

// The smallest page that a file in memory has.
constexpr size_t kPageBytes = 4096;

void look(const std::byte* at, size_t length_bytes) {
  const volatile std::byte* const bytes = at;
  for (size_t i = 0; i < length_bytes; i += kPageBytes) (void)bytes[i];
  if (length_bytes != 0) (void)bytes[length_bytes - 1];
}

}  // namespace

void install_access_guard() {
  struct sigaction action = {};
  action.sa_handler = &on_fault;
  action.sa_flags = SA_NODEFER;
  if (::sigaction(SIGBUS, &action, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "sigaction");
}

bool guarded_look(const std::byte* mapped, size_t length_bytes) noexcept {
  return guarded([=] { look(mapped, length_bytes); });
}

bool guarded_read(std::byte* to, const std::byte* mapped, size_t length_bytes) noexcept {
  return guarded([=] { std::memcpy(to, mapped, length_bytes); });
}

bool guarded_write(std::byte* mapped, const std::byte* from, size_t length_bytes) noexcept {
  return guarded([=] { copy_in_order(mapped, from, length_bytes); });
}

}  // namespace rocemu::dma
