#include "emulator/daemon/rings/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "tests/unit/page.h"

namespace rocemu::daemon {

TEST_CASE("queue memory can neither shrink nor grow, and its seals are final") {
  SharedMemory memory("test", 5000);
  CHECK(memory.size_bytes() % test::kPageBytes == 0);
  CHECK(memory.size_bytes() >= 5000);
  CHECK(::ftruncate(memory.fd(), 100) != 0);
  CHECK(::ftruncate(memory.fd(), 1 << 20) != 0);
  CHECK(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);

  void* other =
      ::mmap(nullptr, memory.size_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0);
  REQUIRE(other != MAP_FAILED);
  static_cast<char*>(other)[4999] = 7;
  CHECK(memory.data()[4999] == std::byte{7});
  ::munmap(other, memory.size_bytes());
}

TEST_CASE("memory for reading is writable to us alone") {
  const SharedMemory memory("test", 4096, SharedMemory::Others::only_read);
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0) == MAP_FAILED);
  CHECK(::pwrite(memory.fd(), "x", 1, 0) < 0);
  void* other = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory.fd(), 0);
  REQUIRE(other != MAP_FAILED);
  CHECK(::mprotect(other, 4096, PROT_READ | PROT_WRITE) != 0);
  memory.data()[1] = std::byte{9};
  CHECK(static_cast<char*>(other)[1] == 9);
  ::munmap(other, 4096);
}

TEST_CASE("the mapping outlives the descriptor") {
  SharedMemory memory("test", 4096);
  memory.take_fd().reset();
  memory.data()[0] = std::byte{1};
  const SharedMemory moved = std::move(memory);
  CHECK(moved.data()[0] == std::byte{1});
}

TEST_CASE("text memory holds the text and nothing else can come in") {
  const std::string text(100'000, 'x');
  const UniqueFd fd = make_text_memfd("test", text);
  std::string read(200'000, '\0');
  REQUIRE(::read(fd.get(), read.data(), read.size()) == 100'000);
  read.resize(100'000);
  CHECK(read == text);
  CHECK(::pwrite(fd.get(), "y", 1, 0) < 0);
}

}  // namespace rocemu::daemon
