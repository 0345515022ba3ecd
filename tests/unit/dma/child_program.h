// A forked process that holds memory for the tests, as a verbs program would.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "emulator/dma/address_space.h"
#include "tests/unit/page.h"

namespace rocemu::dma::test {

using rocemu::test::kPageBytes;

// Its memory is also mapped here, at another address, so that tests see what really happened to it.
// At the address it has in the child, this process has nothing that can be accessed.
class ChildProgram {
 public:
  // Runs `prepare` in the child on its memory before the constructor returns. The first 8 bytes
  // should stay kProbeValue for address_space().
  using Prepare = std::function<void(std::byte* memory)>;
  explicit ChildProgram(size_t pages, const Prepare& prepare = {});
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  static constexpr uint64_t kProbeValue = 0x1122334455667788;

  pid_t pid() const { return pid_; }
  uint64_t base() const { return base_; }
  std::span<std::byte> memory() const { return memory_; }

  // A new descriptor of the child's own /proc/self/mem, opened by it. The caller's to close.
  int mem_fd() const;
  std::unique_ptr<AddressSpace> address_space(std::optional<Method> force) const;

  // Ends the child's main thread, not its others.
  void end_main_thread();
  // Kills it; it stays a zombie until reap().
  void kill();
  void reap();

 private:
  [[noreturn]] void run_child(int memory_fd, int socket, const Prepare& prepare) const;
  void receive_mem_fd();

  pid_t pid_ = -1;
  int socket_ = -1;
  int mem_fd_ = -1;
  uint64_t base_ = 0;
  std::span<std::byte> memory_;
};

std::vector<std::byte> random_bytes(std::mt19937& random, size_t count);

// Runs `body` in a process that holds no privilege: the present user's, or nobody's when that is
// root. True when `body` returned true.
bool holds_without_privilege(const std::function<bool()>& body);

}  // namespace rocemu::dma::test
