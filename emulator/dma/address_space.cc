#include "emulator/dma/address_space.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "emulator/dma/moves_under_way.h"

namespace rocemu::dma {
namespace {

uint64_t address_of(const iovec& range) noexcept {
  return reinterpret_cast<uintptr_t>(range.iov_base);
}

}  // namespace

iovec remote_range(uint64_t address, size_t length_bytes) noexcept {
  return {reinterpret_cast<void*>(static_cast<uintptr_t>(address)), length_bytes};
}

std::string_view to_string(Method method) noexcept {
  switch (method) {
    case Method::process_vm:
      return "process_vm";
    case Method::mem_fd:
      return "mem_fd";
    case Method::local:
      return "local";
    case Method::none:
      return "none";
  }
  return "unknown";
}

AddressSpace::AddressSpace(Method method, pid_t pid, std::unique_ptr<MemFd> mem_fd,
                           std::span<std::byte> memory, uint64_t base_address) noexcept
    : method_(method),
      pid_(pid),
      mem_fd_(std::move(mem_fd)),
      memory_(memory),
      base_address_(base_address) {}

std::unique_ptr<AddressSpace> AddressSpace::probe(pid_t pid, int mem_fd, uint64_t address,
                                                  uint64_t value, std::optional<Method> force) {
  auto descriptor = std::make_unique<MemFd>(mem_fd);
  if (!descriptor->is_process_memory() || force == Method::process_vm) descriptor.reset();

  Method first = Method::process_vm;
  if (force == Method::mem_fd || pid <= 0) {
    if (!descriptor) return nullptr;
    first = Method::mem_fd;
  } else if (force == Method::local || force == Method::none) {
    return nullptr;
  }

  std::unique_ptr<AddressSpace> space(new AddressSpace(first, pid, std::move(descriptor), {}, 0));
  if (pid > 0) space->process_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Whoever makes this wait has to be ended by it. Old kernels have none, and of another PID
  // namespace's program there is none.
  if (pid > 0 && !space->process_ && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    return nullptr;
  const auto reads_back = [&] {
    uint64_t seen = 0;
    return space->move_range(Direction::from_program, address, reinterpret_cast<std::byte*>(&seen),
                             sizeof seen) &&
           seen == value;
  };
  if (reads_back()) return space;

  // The process id may name a stranger (another pid namespace) while the descriptor is right.
  if (space->method_ != Method::process_vm || !space->mem_fd_) return nullptr;
  space->method_ = Method::mem_fd;
  return reads_back() ? std::move(space) : nullptr;
}

std::unique_ptr<AddressSpace> AddressSpace::local(std::span<std::byte> memory,
                                                  uint64_t base_address) {
  if (memory.size() > std::numeric_limits<uint64_t>::max() - base_address) {
    throw std::invalid_argument("local memory would wrap round the end of the address space");
  }
  return std::unique_ptr<AddressSpace>(
      new AddressSpace(Method::local, 0, nullptr, memory, base_address));
}

std::unique_ptr<AddressSpace> AddressSpace::none() {
  return std::unique_ptr<AddressSpace>(new AddressSpace(Method::none, 0, nullptr, {}, 0));
}

Moved AddressSpace::move(Direction direction, std::span<const iovec> local,
                         std::span<const iovec> remote) noexcept {
  assert(!local.empty() && local.size() <= kMaxRanges);
  assert(!remote.empty() && remote.size() <= max_remote_ranges());
  if (gone_) return {.out_of_reach = true};
  switch (method_) {
    case Method::process_vm:
      return move_process_vm(direction, local, remote);
    case Method::mem_fd:
      return move_mem_fd(direction, local, remote.front());
    case Method::local:
      return move_local(direction, local, remote.front());
    case Method::none:
      return move_nowhere(direction, local);
  }
  return {.out_of_reach = true};
}

bool AddressSpace::move_range(Direction direction, uint64_t remote, std::byte* local,
                              uint32_t length_bytes) noexcept {
  if (remote > std::numeric_limits<uint64_t>::max() - length_bytes) return false;
  size_t done = 0;
  while (done < length_bytes) {
    const size_t length = std::min<size_t>(length_bytes - done, kMaxCallBytes);
    const iovec here{local + done, length};
    const iovec there = remote_range(remote + done, length);
    const Method tried = method_;
    const Moved moved = move(direction, {&here, 1}, {&there, 1});
    if (moved.bytes == 0 && method_ == tried) return false;
    done += moved.bytes;
  }
  return true;
}

// process_vm_readv(2) says that no element is split; in fact the kernel stops at the page that is
// missing, so nothing is concluded here from where a short count falls.
Moved AddressSpace::move_process_vm(Direction direction, std::span<const iovec> local,
                                    std::span<const iovec> remote) noexcept {
  const auto call = direction == Direction::from_program ? &process_vm_readv : &process_vm_writev;
  ++system_calls_;
  const MoveUnderWay under_way(pid_, process_.get());
  const ssize_t moved = call(pid_, local.data(), local.size(), remote.data(), remote.size(), 0);
  if (moved >= 0) return {.bytes = static_cast<size_t>(moved)};
  if (errno != ESRCH && errno != EPERM && errno != ENOSYS) return {};
  if (mem_fd_) {
    method_ = Method::mem_fd;
    return {};
  }
  gone_ = errno == ESRCH;
  return {.out_of_reach = true};
}

Moved AddressSpace::move_mem_fd(Direction direction, std::span<const iovec> local,
                                const iovec& remote) noexcept {
  constexpr uint64_t kMaxOffset = std::numeric_limits<off_t>::max();
  const uint64_t address = address_of(remote);
  if (address > kMaxOffset || remote.iov_len > kMaxOffset - address) return {};

  const auto call = direction == Direction::from_program ? &preadv : &pwritev;
  ++system_calls_;
  const MoveUnderWay under_way(pid_, process_.get());
  const ssize_t moved = call(mem_fd_->get(), local.data(), static_cast<int>(local.size()),
                             static_cast<off_t>(address));
  if (moved > 0) return {.bytes = static_cast<size_t>(moved)};
  if (moved < 0) return {};
  // An unmapped page is EIO; end of file means that the address space has been torn down.
  gone_ = true;
  return {.out_of_reach = true};
}

Moved AddressSpace::move_local(Direction direction, std::span<const iovec> local,
                               const iovec& remote) noexcept {
  const uint64_t address = address_of(remote);
  if (address < base_address_ || address - base_address_ >= memory_.size()) return {};
  std::span<std::byte> rest = memory_.subspan(address - base_address_);
  rest = rest.first(std::min(rest.size(), remote.iov_len));

  Moved moved;
  for (const iovec& range : local) {
    const size_t length = std::min(range.iov_len, rest.size());
    if (direction == Direction::from_program) {
      std::memcpy(range.iov_base, rest.data(), length);
    } else {
      std::memcpy(rest.data(), range.iov_base, length);
    }
    rest = rest.subspan(length);
    moved.bytes += length;
  }
  return moved;
}

Moved AddressSpace::move_nowhere(Direction direction, std::span<const iovec> local) noexcept {
  Moved moved;
  for (const iovec& range : local) {
    if (direction == Direction::from_program) std::memset(range.iov_base, 0, range.iov_len);
    moved.bytes += range.iov_len;
  }
  return moved;
}

}  // namespace rocemu::dma
