// One program's memory as the NIC reaches it, and the primitive moves on it.
//
// Three ways in:
// - process_vm: process_vm_readv/writev(2), scatter/gather on both sides. Needs ptrace permission
//   at every call, and names the program by its process id alone (see README.md).
// - mem_fd: the program's own /proc/self/mem, one remote range per call. It ignores page
//   protection: writes go through read-only pages (see mem_fd.h).
// - local: memory of this process, plain memcpy within a span.
// - none: no memory at all; zeroes are read and what is written is lost.
//
// Every address comes from a program or from the wire: any value is safe, a range that is not
// mapped, wraps round or lies outside the span simply does not move.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/unique_fd.h"
#include "emulator/dma/mem_fd.h"

namespace rocemu::dma {

enum class Method : uint8_t { process_vm, mem_fd, local, none };
std::string_view to_string(Method method) noexcept;

enum class Direction : uint8_t { from_program, to_program };

// The result of one call, which moves a prefix of what was asked for, of any length.
struct Moved {
  size_t bytes = 0;
  bool out_of_reach = false;  // the whole program is: gone, or permission was withdrawn
};

// Used by one thread at a time. Must outlive every Batch that holds transfers of it.
class AddressSpace {
 public:
  // The most elements either side of one call may have: IOV_MAX, UIO_MAXIOV in the kernel.
  static constexpr unsigned kMaxRanges = 1024;
  // The most bytes one call moves: MAX_RW_COUNT in the kernel, see NOTES in read(2).
  static constexpr size_t kMaxCallBytes = 0x7ffff000;

  // Finds the first way that reads `value` back at `address` in process `pid`: process_vm, then the
  // descriptor. `force` restricts the search to one. nullptr when no way works.
  // Takes over `mem_fd` in every case (-1: none given). `pid` must be vouched for by the kernel
  // (SO_PEERCRED), never by the program. It is 0 for a program whose PID namespace is not visible
  // here, as in another container; then only the descriptor is left.
  static std::unique_ptr<AddressSpace> probe(pid_t pid, int mem_fd, uint64_t address,
                                             uint64_t value, std::optional<Method> force = {});

  // Memory of this process that appears from `base_address` on. Not owned. Throws
  // std::invalid_argument when the range would wrap round.
  static std::unique_ptr<AddressSpace> local(std::span<std::byte> memory, uint64_t base_address);

  // Takes every address: what a null memory region stands for (ibv_alloc_null_mr(3)).
  static std::unique_ptr<AddressSpace> none();

  // The way in use. Changes from process_vm to mem_fd, for good, when the former is refused later
  // on: the program changed its uid or dumpable flag, or its main thread ended before the others.
  Method method() const noexcept { return method_; }
  // 0 for local memory and none.
  pid_t pid() const noexcept { return pid_; }
  // Calls into the kernel made on behalf of this program so far.
  uint64_t system_calls() const noexcept { return system_calls_; }

  // The number of remote ranges that one call of move() takes.
  unsigned max_remote_ranges() const noexcept {
    return method_ == Method::process_vm ? kMaxRanges : 1;
  }

  // One call. Preconditions: both sides describe the same number of bytes, at most kMaxCallBytes;
  // 1 to kMaxRanges local ranges and 1 to max_remote_ranges() remote ones; none wraps round.
  Moved move(Direction direction, std::span<const iovec> local,
             std::span<const iovec> remote) noexcept;

  // One range, whole; false when it did not move wholly.
  bool move_range(Direction direction, uint64_t remote, std::byte* local,
                  uint32_t length_bytes) noexcept;

 private:
  AddressSpace(Method method, pid_t pid, std::unique_ptr<MemFd> mem_fd, std::span<std::byte> memory,
               uint64_t base_address) noexcept;

  Moved move_process_vm(Direction direction, std::span<const iovec> local,
                        std::span<const iovec> remote) noexcept;
  Moved move_mem_fd(Direction direction, std::span<const iovec> local,
                    const iovec& remote) noexcept;
  Moved move_local(Direction direction, std::span<const iovec> local, const iovec& remote) noexcept;
  static Moved move_nowhere(Direction direction, std::span<const iovec> local) noexcept;

  Method method_;
  pid_t pid_;
  std::unique_ptr<MemFd> mem_fd_;  // null when none was given or it was no good
  std::span<std::byte> memory_;    // local only
  uint64_t base_address_;          // local only
  uint64_t system_calls_ = 0;
  UniqueFd process_;   // its pidfd, where there is one
  bool gone_ = false;  // the program has ended; its process id may be somebody else's by now
};

// A range of a program's memory as an iovec element: an address of that program, not of this one.
iovec remote_range(uint64_t address, size_t length_bytes) noexcept;

}  // namespace rocemu::dma
