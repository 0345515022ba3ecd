// EventWriter is the write end of a program's pipe for completion events or async events. The
// process ignores SIGPIPE, since a program may close its end at any time.
//
// The program made the pipe and could hold up a writer: O_NONBLOCK is a flag of the open file,
// which the program shares and can take away at any time. The pipe is therefore opened anew through
// /proc/self/fd, with flags that only this process can change.
#pragma once

#include <cstdint>
#include <memory>
#include <tl/expected.hpp>
#include <utility>

#include "base/unique_fd.h"
#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/interface/host_interface.h"

namespace rocemu::daemon {

class EventWriter final : public device::EventChannel {
 public:
  // `theirs` is the descriptor that the program sent. Fails with EINVAL when it is no pipe of
  // pipe(2) that can be written to, otherwise with what open(2) says.
  static tl::expected<std::unique_ptr<EventWriter>, int> open(const UniqueFd& theirs);

  // Lives as long as the descriptor.
  void hold(std::shared_ptr<void> charge) { charge_ = std::move(charge); }

  bool completion_event(uint64_t cq_user_pointer) noexcept override;
  bool async_event(uint64_t element, uint32_t event_type) noexcept override;
  // Writes a byte that says no more than that there is something. False when the pipe is full.
  bool token() noexcept;
  // Takes so many of these bytes out again. Returns how many there were: the program may be
  // quicker, and another user's process is not let read its pipe.
  uint32_t take_back(uint32_t tokens) noexcept;

 private:
  explicit EventWriter(UniqueFd fd) : fd_(std::move(fd)) {}
  bool write(const void* event, size_t bytes) noexcept;

  UniqueFd fd_;
  std::shared_ptr<void> charge_;
};

}  // namespace rocemu::daemon
