#include "verbs_shim/provider/context/event_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "verbs_shim/abi/control.h"

namespace rocemu::provider {
namespace {

constexpr size_t kChunkBytes = PIPE_BUF;  // written in one piece or not at all

// Moves up to `room` bytes out of the pipe without waiting.
size_t drain(int pipe_fd, Passage& passage, uint8_t* out, size_t room) {
  if (!passage.open()) return 0;
  size_t bytes = 0;
  while (room - bytes >= kChunkBytes) {
    const ssize_t moved =
        splice(pipe_fd, nullptr, passage.write_end(), nullptr, kChunkBytes, SPLICE_F_NONBLOCK);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) break;
    const ssize_t got = read(passage.read_end(), out + bytes, static_cast<size_t>(moved));
    if (got != moved) break;
    bytes += static_cast<size_t>(moved);
  }
  return bytes;
}

}  // namespace

bool Passage::open() {
  if (ends_[0] < 0 && pipe2(ends_, O_CLOEXEC) != 0) return false;
  take_spare();
  return true;
}

void Passage::give_spare() {
  if (spare_ >= 0) ::close(spare_);
  spare_ = -1;
}

void Passage::take_spare() {
  if (spare_ < 0) spare_ = fcntl(ends_[0], F_DUPFD_CLOEXEC, 0);
}

void Passage::close() {
  give_spare();
  for (int& end : ends_) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

int EventPipe::open(int& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  read_end_ = ends[0];
  write_end = ends[1];
  fchmod(write_end, ROCEMU_EVENT_PIPE_MODE);
  fcntl(write_end, F_SETFL, O_NONBLOCK);
  const int reopened = open_write_end();
  if (reopened >= 0) {
    ::close(reopened);
  } else {
    kept_write_end_ = fcntl(write_end, F_DUPFD_CLOEXEC, 0);
  }
  return 0;
}

void EventPipe::close_write_end() {
  if (kept_write_end_ >= 0) ::close(kept_write_end_);
  kept_write_end_ = -1;
}

int EventPipe::open_write_end() const {
  if (kept_write_end_ >= 0) return fcntl(kept_write_end_, F_DUPFD_CLOEXEC, 0);
  char path[32];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", read_end_);
  return ::open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

unsigned EventPipe::purge(Passage& passage, size_t record_bytes, uint64_t object) {
  const int capacity = fcntl(read_end_, F_GETPIPE_SZ);
  if (capacity <= 0) return 0;
  auto* records = static_cast<uint8_t*>(malloc(static_cast<size_t>(capacity)));
  if (records == nullptr) return 0;
  const size_t bytes = drain(read_end_, passage, records, static_cast<size_t>(capacity));
  unsigned purged = 0;
  size_t kept = 0;
  for (size_t at = 0; at + record_bytes <= bytes; at += record_bytes) {
    uint64_t about;
    memcpy(&about, records + at, sizeof(about));
    if (about == object) {
      ++purged;
    } else {
      memmove(records + kept, records + at, record_bytes);
      kept += record_bytes;
    }
  }
  write_back(passage, records, kept);
  free(records);
  return purged;
}

// The pipe held these a moment ago, so there is room unless the NIC has filled it since; then it is
// made larger, and as a last resort a reader is given a second to make room.
void EventPipe::write_back(Passage& passage, const uint8_t* records, size_t bytes) {
  if (bytes == 0) return;
  passage.give_spare();
  const int fd = open_write_end();
  if (fd < 0) return;
  constexpr int kPatience = 1000;
  int waits = 0;
  for (size_t at = 0; at < bytes;) {
    const size_t chunk = bytes - at < kChunkBytes ? bytes - at : kChunkBytes;
    const ssize_t written = write(fd, records + at, chunk);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (errno == EAGAIN && waits < kPatience) {
      if (waits++ == 0) {
        fcntl(fd, F_SETPIPE_SZ, 2 * fcntl(fd, F_GETPIPE_SZ));
      } else {
        const timespec nap = {0, 1'000'000};
        nanosleep(&nap, nullptr);
      }
    } else if (errno != EINTR) {
      break;
    }
  }
  ::close(fd);
  passage.take_spare();
}

bool EventPipe::append(const void* record, size_t record_bytes) {
  const int fd = open_write_end();
  if (fd < 0) return false;
  const ssize_t written = write(fd, record, record_bytes);
  ::close(fd);
  return written == static_cast<ssize_t>(record_bytes);
}

}  // namespace rocemu::provider
