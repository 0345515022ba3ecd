// madvise as programs call it, with the preload library as built and memory that a region has
// taken the place of.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "tests/unit/verbs_shim/preloaded.h"
#include "tests/unit/verbs_shim/region_memory.h"

namespace {

constexpr char kShare[] = "ROCEMU_SHARE_MEMORY";
constexpr char kDirectory[] = "ROCEMU_DIR";

__attribute__((constructor)) void start(int, char** argv, char**) {
  if (is_preloaded()) return;
  setenv(kDirectory, "/nonexistent", 1);
  setenv(kShare, "1", 1);
  start_preloaded(argv);
}

void fill(const RegionMemory& memory, int from, int count) {
  for (int page = from; page < from + count; ++page) {
    memset(memory.at(page), 'a' + page, RegionMemory::bytes(1));
  }
}

// A letter for each page: its own from fill(), . for zeros, ? for a mixture.
std::string content(const RegionMemory& memory, int from, int count) {
  std::string letters;
  for (int page = from; page < from + count; ++page) {
    const uint8_t* at = memory.at(page);
    const bool uniform =
        std::all_of(at, at + RegionMemory::bytes(1), [&](uint8_t byte) { return byte == *at; });
    letters += !uniform ? '?' : *at == 0 ? '.' : static_cast<char>(*at);
  }
  return letters;
}

int advise(const RegionMemory& memory, int from, int count, int advice) {
  errno = 0;
  return madvise(memory.at(from), RegionMemory::bytes(count), advice);
}

// The exit code of this program, started once more with the preload library and these variables
// (null: not set) for the tests of one tag.
int run_with(const char* directory, const char* share, const char* tag) {
  const pid_t child = fork();
  if (child == 0) {
    mark_preloaded();
    for (const auto& [name, value] : {std::pair{kDirectory, directory}, std::pair{kShare, share}}) {
      if (value != nullptr) {
        setenv(name, value, 1);
      } else {
        unsetenv(name);
      }
    }
    execl("/proc/self/exe", "unit_madvise", tag, nullptr);
    _exit(3);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("MADV_DONTNEED zeroes the pages of a region that it names and no others") {
  RegionMemory memory(6);
  memory.share(0, 6);
  fill(memory, 0, 6);
  CHECK(advise(memory, 1, 2, MADV_DONTNEED) == 0);
  CHECK(errno == 0);
  CHECK(content(memory, 0, 6) == "a..def");
  CHECK(advise(memory, 4, 1, MADV_DONTNEED_LOCKED) == 0);
  CHECK(content(memory, 0, 6) == "a..d.f");
  CHECK(madvise(memory.at(0), 1, MADV_DONTNEED) == 0);  // a part of a page means all of it
  CHECK(content(memory, 0, 6) == "...d.f");
  CHECK(advise(memory, 3, 0, MADV_DONTNEED) == 0);
  CHECK(content(memory, 0, 6) == "...d.f");
  fill(memory, 0, 6);
  CHECK(content(memory, 0, 6) == "abcdef");
}

TEST_CASE("MADV_DONTNEED across private memory, regions and other shared memory") {
  RegionMemory memory(8);
  memory.share(2, 2);
  memory.share(5, 1, "of the program");
  memory.share(6, 1);
  fill(memory, 0, 8);
  CHECK(advise(memory, 1, 6, MADV_DONTNEED) == 0);
  CHECK(content(memory, 0, 8) == "a....f.h");
}

TEST_CASE("MADV_DONTNEED across a hole zeroes what is on both sides, and says so") {
  RegionMemory memory(6);
  memory.share(0, 2);
  memory.share(4, 2);
  fill(memory, 0, 6);
  REQUIRE(munmap(memory.at(2), RegionMemory::bytes(2)) == 0);
  CHECK(advise(memory, 1, 4, MADV_DONTNEED) == -1);
  CHECK(errno == ENOMEM);
  CHECK(content(memory, 0, 2) == "a.");
  CHECK(content(memory, 4, 2) == ".f");
}

TEST_CASE("MADV_DONTNEED of memory that cannot be written now, or is locked") {
  RegionMemory memory(4);
  memory.share(0, 4);
  fill(memory, 0, 4);
  REQUIRE(mprotect(memory.at(0), RegionMemory::bytes(1), PROT_NONE) == 0);
  CHECK(advise(memory, 0, 1, MADV_DONTNEED) == 0);
  // AddressSanitizer's mlock locks nothing.
  REQUIRE(syscall(SYS_mlock, memory.at(1), RegionMemory::bytes(2)) == 0);
  REQUIRE(mprotect(memory.at(2), RegionMemory::bytes(1), PROT_READ) == 0);
  CHECK(advise(memory, 1, 1, MADV_DONTNEED) == -1);
  CHECK(errno == EINVAL);
  CHECK(content(memory, 1, 3) == "bcd");
  CHECK(advise(memory, 1, 2, MADV_DONTNEED_LOCKED) == 0);
  REQUIRE(mprotect(memory.at(0), RegionMemory::bytes(1), PROT_READ) == 0);
  CHECK(content(memory, 0, 4) == "...d");

  // Still not to be written.
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  CHECK(read(zeros, memory.at(2), 1) == -1);
  CHECK(errno == EFAULT);
  close(zeros);
}

TEST_CASE("bad calls of madvise fail as ever") {
  RegionMemory memory(2);
  memory.share(0, 2);
  fill(memory, 0, 2);
  for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
    errno = 0;
    CHECK(madvise(memory.at(0) + 1, RegionMemory::bytes(1), advice) == -1);
    CHECK(errno == EINVAL);
    errno = 0;
    CHECK(madvise(memory.at(0), SIZE_MAX - 1, advice) == -1);
    CHECK(errno == EINVAL);
  }
  CHECK(advise(memory, 0, 1, 12345) == -1);
  CHECK(errno == EINVAL);
  CHECK(content(memory, 0, 2) == "ab");
  CHECK(advise(memory, 0, 2, MADV_WILLNEED) == 0);
}

TEST_CASE("without a descriptor to see the mappings by, MADV_DONTNEED fails") {
  RegionMemory memory(1);
  memory.share(0, 1);
  fill(memory, 0, 1);
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none = {0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int result = advise(memory, 0, 1, MADV_DONTNEED);
  const int error = errno;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(result == -1);
  CHECK(error == ENOMEM);
}

TEST_CASE("MADV_FREE is taken for regions and applied to what is around them") {
  RegionMemory memory(8);
  memory.share(2, 2);
  memory.share(5, 1);
  fill(memory, 0, 8);
  CHECK(advise(memory, 2, 2, MADV_FREE) == 0);
  CHECK(advise(memory, 1, 6, MADV_FREE) == 0);
  CHECK(errno == 0);
  CHECK(content(memory, 2, 2) == "cd");  // nothing takes it away
  for (const int page : {1, 4, 6}) {
    const std::string own(1, static_cast<char>('a' + page));
    const std::string now = content(memory, page, 1);
    CHECK((now == own || now == "."));
  }
  CHECK(advise(memory, 0, 8, MADV_FREE) == 0);
  // Other shared memory is refused as ever, whether or not there are regions around it.
  memory.share(7, 1, "of the program");
  CHECK(advise(memory, 7, 1, MADV_FREE) == -1);
  CHECK(errno == EINVAL);
  CHECK(advise(memory, 5, 3, MADV_FREE) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("without the variable madvise is the system's") {
  CHECK(run_with("/nonexistent", nullptr, "[system]") == 0);
  CHECK(run_with("/nonexistent", "0", "[system]") == 0);
  CHECK(run_with("/nonexistent", "", "[system]") == 0);
  CHECK(run_with(nullptr, "1", "[system]") == 0);
}

// For the test above.
TEST_CASE("the system's madvise keeps regions and frees none", "[.][system]") {
  RegionMemory memory(2);
  memory.share(0, 1);
  fill(memory, 0, 2);
  CHECK(advise(memory, 0, 2, MADV_DONTNEED) == 0);
  CHECK(content(memory, 0, 2) == "a.");
  CHECK(advise(memory, 0, 1, MADV_FREE) == -1);
  CHECK(errno == EINVAL);
}
