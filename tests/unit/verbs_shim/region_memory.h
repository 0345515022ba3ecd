// Memory as a test registers it: pages of an address range, private or of a shared memory region.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>

class RegionMemory {
 public:
  explicit RegionMemory(int pages) : pages_(pages) {
    void* memory =
        mmap(nullptr, bytes(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    base_ = static_cast<uint8_t*>(memory);
  }
  ~RegionMemory() { munmap(base_, bytes(pages_)); }
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  // Puts pages [from, from + count) of a memfd of this name in the place of those that are there.
  void share(int from, int count, const char* name = "rocemu-region", int sharing = MAP_SHARED) {
    const int fd = memfd_create(name, MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, static_cast<off_t>(bytes(count))) == 0);
    REQUIRE(mmap(at(from), bytes(count), PROT_READ | PROT_WRITE, sharing | MAP_FIXED, fd, 0) ==
            at(from));
    close(fd);
  }

  static size_t bytes(int pages) { return static_cast<size_t>(pages) * page(); }
  uint8_t* at(int page_index) const { return base_ + bytes(page_index); }
  uintptr_t address(int page_index) const { return reinterpret_cast<uintptr_t>(at(page_index)); }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

  uint8_t* base_;
  int pages_;
};
