// One request as it came from a program: bytes and descriptors, by whatever way they came.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/reaper/reaper.h"
#include "base/unique_fd.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {

struct ReceivedMessage {
  std::array<std::byte, ROCEMU_MESSAGE_MAX> buffer;
  size_t length_bytes = 0;
  std::array<UniqueFd, ROCEMU_MESSAGE_MAX_FDS> fds;
  size_t fd_count = 0;

  ReceivedMessage() = default;
  ReceivedMessage(ReceivedMessage&&) = default;
  ReceivedMessage& operator=(ReceivedMessage&&) = default;
  ~ReceivedMessage() { close_fds(); }

  // Closes the descriptors that a handler has left: they may be of anything, and take time to
  // close.
  void close_fds() {
    for (UniqueFd& fd : fds) close_elsewhere(std::move(fd));
    fd_count = 0;
  }
  std::span<const std::byte> bytes() const { return {buffer.data(), length_bytes}; }
};

}  // namespace rocemu::daemon
