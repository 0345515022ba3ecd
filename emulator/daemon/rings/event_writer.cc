#include "emulator/daemon/rings/event_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {

namespace {

// The number of the filesystem that holds a file, as far as it is known without asking its server;
// empty when it is not.
std::optional<std::pair<uint32_t, uint32_t>> filesystem_of(int fd) {
  struct statx status;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) return {};
  return std::pair(status.stx_dev_major, status.stx_dev_minor);
}

// All pipes of pipe(2) are on one filesystem of the kernel's own. A named pipe may be on one whose
// server makes an open or a close wait.
bool is_pipe(int fd) {
  static const auto pipes = [] {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
    const UniqueFd read(ends[0]), write(ends[1]);
    return filesystem_of(write.get());
  }();
  return pipes && filesystem_of(fd) == pipes;
}

UniqueFd open_anew(int pipe, int access) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", pipe);
  return UniqueFd(::open(path, access | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

tl::expected<std::unique_ptr<EventWriter>, int> EventWriter::open(const UniqueFd& theirs) {
  if (!is_pipe(theirs.get())) return tl::unexpected(EINVAL);
  const int flags = ::fcntl(theirs.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return tl::unexpected(EINVAL);

  UniqueFd ours = open_anew(theirs.get(), O_WRONLY);
  if (!ours) return tl::unexpected(errno);
  return std::unique_ptr<EventWriter>(new EventWriter(std::move(ours)));
}

bool EventWriter::completion_event(uint64_t cq_user_pointer) noexcept {
  return write(&cq_user_pointer, sizeof(cq_user_pointer));
}

bool EventWriter::async_event(uint64_t element, uint32_t event_type) noexcept {
  const rocemu_async_event event{element, event_type, 0};
  return write(&event, sizeof(event));
}

bool EventWriter::token() noexcept {
  const uint8_t byte = 0;
  return write(&byte, sizeof(byte));
}

uint32_t EventWriter::take_back(uint32_t tokens) noexcept {
  const UniqueFd end = open_anew(fd_.get(), O_RDONLY);
  uint32_t taken = 0;
  char bytes[64];
  while (end && taken < tokens) {
    const ssize_t got = ::read(end.get(), bytes, std::min<size_t>(tokens - taken, sizeof bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    taken += static_cast<uint32_t>(got);
  }
  return taken;
}

// Events have at most PIPE_BUF bytes, which a pipe takes whole or not at all (pipe(7)). Nobody
// waits for the events of a pipe without a reader (EPIPE): they count as delivered.
bool EventWriter::write(const void* event, size_t bytes) noexcept {
  ssize_t written;
  do written = ::write(fd_.get(), event, bytes);
  while (written < 0 && errno == EINTR);
  return written >= 0 || errno != EAGAIN;
}

}  // namespace rocemu::daemon
