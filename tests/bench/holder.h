// A process that holds memory which others move bytes from and to.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace rocemu::bench {

constexpr int kFilledWith = 0x5a;

inline std::byte* make_region(size_t bytes, int sharing = MAP_PRIVATE) {
  void* region = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  std::memset(region, kFilledWith, bytes);
  return static_cast<std::byte*>(region);
}

// A process that holds a region and does nothing else.
class Holder {
 public:
  Holder(size_t bytes, bool mapped) {
    if (mapped) region_ = make_region(bytes, MAP_SHARED);
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::byte* region = mapped ? region_ : make_region(bytes);
      if (::write(ends[1], &region, sizeof region) != sizeof region) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    if (::read(ends[0], &region_, sizeof region_) != sizeof region_)
      throw std::runtime_error("no memory for a region of that size");
    ::close(ends[0]);
  }
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  pid_t pid() const { return pid_; }
  std::byte* at(size_t offset) const { return region_ + offset; }

 private:
  pid_t pid_ = -1;
  std::byte* region_ = nullptr;
};

}  // namespace rocemu::bench
