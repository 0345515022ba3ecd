// SharedMemory is a piece of memory that a program and the NIC share: a memfd that can neither
// shrink nor grow, so that no access of the NIC faults whatever the program does with its
// descriptor (memfd_create(2), fcntl(2) F_ADD_SEALS).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace rocemu::daemon {

class SharedMemory {
 public:
  enum class Others { may_write, only_read };  // kinds of mappings that anybody else can make

  // The memory is zeroed, and `bytes` rounded up to pages. Throws std::system_error (ENOMEM,
  // EMFILE, …).
  SharedMemory(const char* name, size_t bytes, Others others = Others::may_write);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  // Lives as long as the mapping.
  void hold(std::shared_ptr<void> charge) { charge_ = std::move(charge); }

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

  // The descriptor to hand out. Once taken, the memory lives by its mappings.
  int fd() const { return fd_.get(); }
  UniqueFd take_fd() { return std::move(fd_); }

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  std::shared_ptr<void> charge_;
};

// Makes a sealed memfd that holds `content`, with the file offset at 0. Throws std::system_error.
UniqueFd make_text_memfd(const char* name, std::string_view content);

}  // namespace rocemu::daemon
