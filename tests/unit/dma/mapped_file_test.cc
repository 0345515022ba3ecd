// Files in memory that programs hand over: which are taken, and what happens when they shrink.
#include "emulator/dma/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "emulator/dma/atomics.h"
#include "emulator/dma/guarded_access.h"
#include "tests/unit/page.h"

namespace rocemu::dma {
namespace {

using test::kPageBytes;

class File {
 public:
  explicit File(off_t bytes) : fd_(::memfd_create("test", MFD_CLOEXEC)) {
    REQUIRE(fd_ >= 0);
    resize(bytes);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  void resize(off_t bytes) const { REQUIRE(::ftruncate(fd_, bytes) == 0); }
  int reopen(int flags) const {
    return ::open(("/proc/self/fd/" + std::to_string(fd_)).c_str(), flags | O_CLOEXEC);
  }

 private:
  int fd_;
};

std::vector<std::byte> filled(int value) {
  return std::vector<std::byte>(2 * kPageBytes, std::byte(value));
}

TEST_CASE("a file in memory is mapped from any byte on") {
  const File file(4 * kPageBytes);
  const auto pattern = filled(7);
  REQUIRE(::pwrite(file.fd(), pattern.data(), 100, kPageBytes + 13) == 100);
  const auto mapped = MappedFile::map(file.fd(), kPageBytes + 13, 2 * kPageBytes);
  REQUIRE(mapped != nullptr);
  CHECK(mapped->bytes().size() == 2 * kPageBytes);
  CHECK(reinterpret_cast<uintptr_t>(mapped->bytes().data()) % kPageBytes == 13);
  CHECK(std::memcmp(mapped->bytes().data(), pattern.data(), 100) == 0);

  install_access_guard();
  REQUIRE(guarded_write(mapped->bytes().data() + 200, pattern.data(), kPageBytes));
  std::vector<std::byte> seen(kPageBytes);
  REQUIRE(::pread(file.fd(), seen.data(), kPageBytes, kPageBytes + 213) ==
          static_cast<ssize_t>(kPageBytes));
  CHECK(std::memcmp(seen.data(), pattern.data(), kPageBytes) == 0);
}

TEST_CASE("what could stall or fault an access is not mapped") {
  const File file(kPageBytes);
  CHECK(MappedFile::map(file.fd(), 0, kPageBytes) != nullptr);
  CHECK(MappedFile::map(file.fd(), 0, 0) == nullptr);
  CHECK(MappedFile::map(file.fd(), 1, kPageBytes) == nullptr);
  CHECK(MappedFile::map(file.fd(), UINT64_MAX, 2) == nullptr);
  CHECK(MappedFile::map(file.fd(), 2, UINT64_MAX) == nullptr);
  CHECK(MappedFile::map(-1, 0, 1) == nullptr);

  for (const int flags : {O_RDONLY, O_WRONLY, O_PATH}) {
    const int fd = file.reopen(flags);
    REQUIRE(fd >= 0);
    CHECK(MappedFile::map(fd, 0, kPageBytes) == nullptr);
    ::close(fd);
  }
  for (const char* path : {"/dev/zero", "/proc/self/maps", "/proc/self/mem"}) {
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    CHECK(MappedFile::map(fd, 0, 1) == nullptr);
    if (fd >= 0) ::close(fd);
  }
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(MappedFile::map(ends[0], 0, 1) == nullptr);
  for (const int end : ends) ::close(end);
}

TEST_CASE("there is an end to what is mapped, and room comes back") {
  const File large(off_t{1} << 43);
  std::vector<std::shared_ptr<const MappedFile>> kept;
  // Room of what is dropped comes back when another thread has unmapped it.
  const auto fill = [&](uint64_t bytes, size_t most) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    kept.clear();
    while (kept.size() < most && std::chrono::steady_clock::now() < end) {
      if (auto mapped = MappedFile::map(large.fd(), 0, bytes)) {
        kept.push_back(std::move(mapped));
      } else {
        std::this_thread::yield();
      }
    }
    CHECK(kept.size() == most);
    CHECK(MappedFile::map(large.fd(), 0, bytes) == nullptr);
  };
#ifdef __SANITIZE_THREAD__
  WARN("the most bytes are not tried: ThreadSanitizer leaves no address space for so many");
#else
  fill(uint64_t{1} << 43, MappedFile::kMaxBytes >> 43);
#endif
  fill(kPageBytes, MappedFile::kMaxMappings);
  fill(kPageBytes, MappedFile::kMaxMappings);
}

TEST_CASE("a file that shrinks ends the access and nothing else") {
  install_access_guard();
  const File file(2 * kPageBytes);
  const auto mapped = MappedFile::map(file.fd(), 0, 2 * kPageBytes);
  REQUIRE(mapped != nullptr);
  std::byte* const bytes = mapped->bytes().data();
  auto here = filled(3);
  REQUIRE(guarded_write(bytes, here.data(), 2 * kPageBytes));
  file.resize(kPageBytes);
  for (int again = 0; again < 3; ++again) {
    CHECK(guarded_write(bytes, here.data(), kPageBytes));
    CHECK_FALSE(guarded_write(bytes, here.data(), kPageBytes + 1));
    CHECK_FALSE(guarded_read(here.data(), bytes + kPageBytes, 1));
#ifndef __SANITIZE_THREAD__  // its own atomics hold a lock, which a jump out of them leaves taken
    CHECK_FALSE(fetch_add(bytes + kPageBytes, 1));
    CHECK_FALSE(compare_swap(bytes + kPageBytes + 8, 0, 1));
#endif
  }
  // On another thread as well, which has a place of its own to go back to.
  std::thread([&] {
    CHECK_FALSE(guarded_read(here.data(), bytes + kPageBytes, kPageBytes));
  }).join();
  file.resize(2 * kPageBytes);
  CHECK(guarded_read(here.data(), bytes + kPageBytes, kPageBytes));
  CHECK(here[0] == std::byte{0});
}

TEST_CASE("every length is written to every place, and nothing beside it") {
  install_access_guard();
  const File file(kPageBytes);
  const auto mapped = MappedFile::map(file.fd(), 0, kPageBytes);
  REQUIRE(mapped != nullptr);
  std::array<std::byte, 300> from;
  for (size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + 1);
  for (size_t at = 0; at < 16; ++at) {
    for (const size_t length : {0, 1, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 300}) {
      std::byte* const to = mapped->bytes().data() + 64 + at;
      std::memset(mapped->bytes().data(), 0x5a, 512);
      REQUIRE(guarded_write(to, from.data(), length));
      REQUIRE(std::memcmp(to, from.data(), length) == 0);
      REQUIRE(to[-1] == std::byte{0x5a});
      REQUIRE(to[length] == std::byte{0x5a});
    }
  }
}

TEST_CASE("what comes before the last byte is there when that is seen") {
  install_access_guard();
  const File file(2 * kPageBytes);
  const auto mapped = MappedFile::map(file.fd(), 0, 2 * kPageBytes);
  REQUIRE(mapped != nullptr);
  const size_t length = GENERATE(200, 1000, 1024, 4096);
  std::byte* const to = mapped->bytes().data() + 16;
  auto* const own = static_cast<volatile std::byte*>(
      ::mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0));
  REQUIRE(own != MAP_FAILED);
  std::atomic<bool> done{false};
  size_t early = 0;
  std::thread program([&] {
    volatile std::byte* const seen = own + 16;
    for (int value = 1; !done; value = value % 100 + 1) {
      while (seen[length - 1] != std::byte(value) && !done) {
      }
      for (size_t i = 0; i < length && !done; i += 61) early += seen[i] != std::byte(value);
      seen[length - 1] = std::byte{0};  // the next one may come
    }
  });
  std::vector<std::byte> from(kPageBytes);
  for (int i = 0; i < 20'000; ++i) {
    std::fill(from.begin(), from.end(), std::byte(i % 100 + 1));
    guarded_write(to, from.data(), length);
    while (static_cast<volatile std::byte*>(to)[length - 1] != std::byte{0}) {
    }
  }
  done = true;
  program.join();
  CHECK(early == 0);
  ::munmap(const_cast<std::byte*>(own), 2 * kPageBytes);
}

// Programs wait for counters and flags of 2, 4 and 8 bytes by looking at memory.
template <class Number>
size_t torn_values() {
  const File file(kPageBytes);
  const auto mapped = MappedFile::map(file.fd(), 0, kPageBytes);
  REQUIRE(mapped != nullptr);
  std::byte* const to = mapped->bytes().data() + 64;
  constexpr auto kAllOnes = static_cast<Number>(~Number{0});
  // The program's own mapping.
  auto* const own =
      static_cast<std::byte*>(::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file.fd(), 0));
  REQUIRE(own != MAP_FAILED);
  std::atomic<bool> done{false};
  size_t torn = 0;
  std::thread program([&] {
    const auto* const seen = reinterpret_cast<const volatile Number*>(own + 64);
    while (!done) {
      const Number value = *seen;
      torn += value != 0 && value != kAllOnes;
    }
  });
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    const Number value = i % 2 == 0 ? kAllOnes : Number{0};
    guarded_write(to, reinterpret_cast<const std::byte*>(&value), sizeof value);
  }
  done = true;
  program.join();
  ::munmap(own, kPageBytes);
  return torn;
}

TEST_CASE("an aligned number is written at once") {
  install_access_guard();
  CHECK(torn_values<uint16_t>() == 0);
  CHECK(torn_values<uint32_t>() == 0);
  CHECK(torn_values<uint64_t>() == 0);
}

TEST_CASE("atomics on mapped memory are the processor's") {
  install_access_guard();
  const File file(kPageBytes);
  const auto mapped = MappedFile::map(file.fd(), 0, kPageBytes);
  REQUIRE(mapped != nullptr);
  std::byte* const at = mapped->bytes().data() + 16;
  CHECK(fetch_add(at, 5) == 0U);
  CHECK(fetch_add(at, UINT64_MAX) == 5U);
  CHECK(compare_swap(at, 4, 77) == 4U);
  CHECK(compare_swap(at, 4, 78) == 77U);
  CHECK(fetch_add(at, 0) == 77U);
  CHECK_FALSE(fetch_add(at + 4, 1));
  CHECK_FALSE(compare_swap(at + 1, 0, 1));

  // A program that counts in the same place, by its own mapping.
  auto* const own = static_cast<uint64_t*>(
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0));
  REQUIRE(own != MAP_FAILED);
  constexpr uint64_t kTimes = 100'000;
  std::thread program([&] {
    for (uint64_t i = 0; i < kTimes; ++i) __atomic_fetch_add(&own[2], 1, __ATOMIC_SEQ_CST);
  });
  for (uint64_t i = 0; i < kTimes; ++i) fetch_add(at, 1);
  program.join();
  CHECK(own[2] == 77 + 2 * kTimes);
  ::munmap(own, kPageBytes);
}

}  // namespace
}  // namespace rocemu::dma
