#include "emulator/daemon/rings/event_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {

tl::expected<std::unique_ptr<EventWriter>, int> EventWriter::open(const UniqueFd& theirs) {
  struct stat status;
  if (::fstat(theirs.get(), &status) != 0 || !S_ISFIFO(status.st_mode))
    return tl::unexpected(EINVAL);
  const int flags = ::fcntl(theirs.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return tl::unexpected(EINVAL);

  const std::string path = "/proc/self/fd/" + std::to_string(theirs.get());
  UniqueFd ours(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
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

// Events have at most PIPE_BUF bytes, which a pipe takes whole or not at all (pipe(7)). Nobody
// waits for the events of a pipe without a reader (EPIPE): they count as delivered.
bool EventWriter::write(const void* event, size_t bytes) noexcept {
  ssize_t written;
  do written = ::write(fd_.get(), event, bytes);
  while (written < 0 && errno == EINTR);
  return written >= 0 || errno != EAGAIN;
}

}  // namespace rocemu::daemon
