// What a program may do with memory that it shares, or that became shared when it was registered.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kBytes = 5000;
constexpr size_t kRegion = 65536;

// The line of /proc/self/maps that has the address.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from, to;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 && from <= at && at < to) return line;
  }
  return "nothing";
}
bool is_shared_region(const void* address) {
  return mapping_of(address).find("/memfd:rocemu-region") != std::string::npos;
}
void expect_shared_region(const void* address) {
  if (!is_shared_region(address)) throw Failure("not shared: " + mapping_of(address));
}

// `from` writes `value` to what the key names.
void write_to(Ends& ends, uint64_t address, uint32_t rkey, int value, uint32_t bytes = kBytes) {
  std::memset(ends.a.memory.data(), value, bytes);
  SendRequest write(IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, bytes));
  post_ok(ends.a.qp.get(), write.remote(address, rkey));
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
}

MrPtr registered(Lab& lab, const void* memory, size_t bytes) {
  MrPtr mr = register_memory(lab.b().pd.get(), memory, bytes, kEveryRight);
  must(mr.get(), "ibv_reg_mr");
  return mr;
}

uint64_t address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

void expect_filled(const void* memory, size_t bytes, int value, const char* what) {
  expect_bytes({static_cast<const std::byte*>(memory), bytes}, std::byte(value), what);
}

void becomes_shared(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  std::memset(memory.data(), 7, kRegion);
  MrPtr mr = registered(lab, memory.data() + 100, kRegion - 200);
  expect_shared_region(memory.data());
  expect_filled(memory.data(), kRegion, 7, "the memory after registration");
  write_to(ends, memory.address() + 100, mr->rkey, 9);
  expect_filled(memory.data() + 100, kBytes, 9, "the target");
  expect_filled(memory.data() + 100 + kBytes, kRegion - 100 - kBytes, 7, "what is behind it");
  // Once more, in part, and after the first has gone.
  MrPtr again = registered(lab, memory.data() + 4096, 8192);
  mr.reset();
  write_to(ends, memory.address() + 4096, again->rkey, 11);
  expect_filled(memory.data() + 4096, kBytes, 11, "the target of the second region");
}

// Two regions that share a page: the second is reached otherwise.
void neighbours(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  const MrPtr first = registered(lab, memory.data() + 4096, 6000);
  const MrPtr second = registered(lab, memory.data() + 4096 + 6000, 10000);
  expect_shared_region(memory.data() + 4096);
  write_to(ends, memory.address() + 4096, first->rkey, 3);
  write_to(ends, memory.address() + 4096 + 6000, second->rkey, 4);
  expect_filled(memory.data() + 4096, kBytes, 3, "the first target");
  expect_filled(memory.data() + 4096 + 6000, kBytes, 4, "the second target");
}

// As with a device that has pinned the pages.
void unmapped_and_mapped_anew(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  const MrPtr mr = registered(lab, memory.data(), kRegion);
  void* const other = ::mmap(memory.data(), kRegion, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (other == MAP_FAILED) fail_errno(errno, "mmap");
  write_to(ends, memory.address(), mr->rkey, 5);
  expect_filled(memory.data(), kRegion, 0, "what is mapped there now");
}

void forked(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  std::memset(memory.data(), 1, kRegion);
  const MrPtr mr = registered(lab, memory.data(), kRegion);
  int go[2];
  if (::pipe(go) != 0) fail_errno(errno, "pipe");
  const pid_t child = ::fork();
  if (child < 0) fail_errno(errno, "fork");
  if (child == 0) {
    ::close(go[1]);  // the parent's alone: the child ends with it
    // What was there at the fork, whatever the parent writes, and a place of its own to write to.
    char byte;
    bool right = ::read(go[0], &byte, 1) == 1;
    for (size_t i = 0; i < kRegion; ++i) right = right && memory.data()[i] == std::byte{1};
    std::memset(memory.data(), 3, kRegion);
    ::_exit(right && !is_shared_region(memory.data()) ? 0 : 1);
  }
  std::memset(memory.data(), 2, kRegion);
  write_to(ends, memory.address(), mr->rkey, 6);
  if (::write(go[1], "", 1) != 1) fail_errno(errno, "write");
  int status;
  if (::waitpid(child, &status, 0) != child) fail_errno(errno, "waitpid");
  for (const int end : go) ::close(end);
  if (status != 0) throw Failure("the child sees what its parent wrote later");
  expect_filled(memory.data(), kBytes, 6, "the target");
  expect_filled(memory.data() + kBytes, kRegion - kBytes, 2, "the parent's memory");
}

void given_up(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  std::memset(memory.data(), 1, kRegion);
  const MrPtr mr = registered(lab, memory.data(), kRegion);
  expect_shared_region(memory.data());
  if (::madvise(memory.data() + 4096, 8192, MADV_DONTNEED) != 0) fail_errno(errno, "madvise");
  expect_filled(memory.data(), 4096, 1, "the page before");
  expect_filled(memory.data() + 4096, 8192, 0, "what was given up");
  expect_filled(memory.data() + 12288, kRegion - 12288, 1, "the pages behind");
  write_to(ends, memory.address() + 4096, mr->rkey, 2);
  expect_filled(memory.data() + 4096, kBytes, 2, "the target");
}

// A large block has a mapping of its own, which realloc moves and lets grow.
void grown(Lab& lab) {
  constexpr size_t kLarge = 1 << 20;
  auto* block = static_cast<std::byte*>(std::malloc(kLarge));
  std::memset(block, 1, kLarge);
  registered(lab, block, kLarge).reset();
  expect_shared_region(block);
  block = static_cast<std::byte*>(std::realloc(block, 8 * kLarge));
  expect_filled(block, kLarge, 1, "what was there before");
  std::memset(block, 2, 8 * kLarge);
  expect_filled(block, 8 * kLarge, 2, "the block");
  std::free(block);
}

// A file of the program's own, which needs no option.
struct File {
  int fd;
  std::byte* memory;
  explicit File(int descriptor) : fd(descriptor) {
    if (fd < 0 || ::ftruncate(fd, kRegion) != 0) fail_errno(errno, "a file in memory");
    void* const at = ::mmap(nullptr, kRegion, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) fail_errno(errno, "mmap");
    memory = static_cast<std::byte*>(at);
  }
  ~File() {
    ::munmap(memory, kRegion);
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

// That the NIC has mapped the file shows when the program has it no more.
void use_without_mapping(Lab& lab, File& file, std::byte* elsewhere) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = registered(lab, file.memory + 4096, 8192);
  if (::mprotect(file.memory, kRegion, PROT_NONE) != 0) fail_errno(errno, "mprotect");
  write_to(ends, address_of(file.memory + 4096), mr->rkey, 4);
  expect_filled(elsewhere + 4096, kBytes, 4, "the target, seen elsewhere");
}

void own_memfd(Lab& lab) {
  File file(::memfd_create("of-the-program", MFD_CLOEXEC));
  void* const again = ::mmap(nullptr, kRegion, PROT_READ, MAP_SHARED, file.fd, 0);
  if (again == MAP_FAILED) fail_errno(errno, "mmap");
  use_without_mapping(lab, file, static_cast<std::byte*>(again));
  ::munmap(again, kRegion);
}

void own_named_file(Lab& lab) {
  const std::string name = "/rocemu-test-" + std::to_string(::getpid());
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  File file(fd);
  ::close(fd);  // it is found by its name
  file.fd = -1;
  const int reader = ::shm_open(name.c_str(), O_RDONLY, 0);
  void* const again = ::mmap(nullptr, kRegion, PROT_READ, MAP_SHARED, reader, 0);
  ::close(reader);
  if (again == MAP_FAILED) fail_errno(errno, "mmap");
  use_without_mapping(lab, file, static_cast<std::byte*>(again));
  ::shm_unlink(name.c_str());
  ::munmap(again, kRegion);
}

bool is_locked(int fd) {
  const pid_t child = ::fork();
  if (child < 0) fail_errno(errno, "fork");
  if (child == 0) {
    struct flock other {};
    other.l_type = F_WRLCK;
    ::_exit(::fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK ? 0 : 1);
  }
  int status;
  if (::waitpid(child, &status, 0) != child) fail_errno(errno, "waitpid");
  return status == 0;
}

// Closing any descriptor of a file gives up the process's locks on it.
void locked(Lab& lab) {
  File file(::memfd_create("of-the-program", MFD_CLOEXEC));
  const File other(::memfd_create("another", MFD_CLOEXEC));
  for (const int fd : {file.fd, other.fd}) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (::fcntl(fd, F_SETLK, &lock) != 0) fail_errno(errno, "fcntl");
  }
  registered(lab, file.memory, kRegion).reset();
  if (!is_locked(file.fd) || !is_locked(other.fd)) throw Failure("a lock has gone");
}

// The clock is asked now and then only: what a program sees between two looks is the row's matter.
void wait_for_byte(const volatile std::byte& byte, std::byte value) {
  const auto deadline = Clock::now() + kPatience;
  for (uint64_t looks = 1; byte != value; ++looks)
    if (looks % 4096 == 0 && Clock::now() > deadline) throw Failure("the last byte never comes");
}

// Programs wait for a message's last byte, as devices write in order.
void last_byte_last(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  File file(::memfd_create("of-the-program", MFD_CLOEXEC));
  const MrPtr mr = registered(lab, file.memory, kRegion);
  for (const uint32_t bytes : {200U, 1000U, 1024U, 4000U}) {
    const volatile std::byte* const target = file.memory + 16;
    for (int i = 0; i < 2000; ++i) {
      const auto value = std::byte(i % 255 + 1);
      std::memset(ends.a.memory.data(), std::to_integer<int>(value), bytes);
      SendRequest write(IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, bytes));
      post_ok(ends.a.qp.get(), write.remote(address_of(file.memory + 16), mr->rkey));
      wait_for_byte(target[bytes - 1], value);
      for (uint32_t k = 0; k < bytes; ++k)
        if (target[k] != value) throw Failure("the last byte is there before the others");
      expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    }
  }
}

// The NIC survives (each row is followed by traffic of another connection), and says so.
void cut_short(Lab& lab) {
  File file(::memfd_create("of-the-program", MFD_CLOEXEC));
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Ends ends = make_ends(lab, IBV_QPT_RC);
    if (::ftruncate(file.fd, kRegion) != 0) fail_errno(errno, "ftruncate");
    const MrPtr mr = registered(lab, file.memory, kRegion);
    if (::ftruncate(file.fd, 0) != 0) fail_errno(errno, "ftruncate");
    SendRequest request(opcode, 1, ends.a.sge(0, kBytes));
    post_ok(ends.a.qp.get(), request.remote(address_of(file.memory), mr->rkey));
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_REM_OP_ERR, IBV_WC_REM_ACCESS_ERR});
    expect_state(ends.b.qp.get(), IBV_QPS_ERR);
    ends.b.qp.reset();  // with its event, of which devices have different ones
  }
}

// What a sender has taken away is its own fault, and no harm to its peer.
void source_cut_short(Lab& lab) {
  File file(::memfd_create("of-the-program", MFD_CLOEXEC));
  const MrPtr mr = register_memory(lab.a().pd.get(), file.memory, kRegion, kEveryRight);
  must(mr.get(), "ibv_reg_mr");
  if (::ftruncate(file.fd, 0) != 0) fail_errno(errno, "ftruncate");
  Ends ends = make_ends(lab, IBV_QPT_RC);
  SendRequest request(IBV_WR_RDMA_WRITE, 1, ibv_sge{address_of(file.memory), kBytes, mr->lkey});
  post_ok(ends.a.qp.get(), request.remote(ends.b.memory.address(), ends.b.mr->rkey));
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR});
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

// Whatever comes of the messages, the NIC survives, and nothing arrives that was not there.
void cut_short_meanwhile(Lab& lab) {
  constexpr int kMessages = 400;
  constexpr std::byte kContent{0x5a};
  File source(::memfd_create("of-the-program", MFD_CLOEXEC));
  File target(::memfd_create("of-the-program", MFD_CLOEXEC));
  const MrPtr source_mr = register_memory(lab.a().pd.get(), source.memory, kRegion, kEveryRight);
  must(source_mr.get(), "ibv_reg_mr");
  const MrPtr target_mr = registered(lab, target.memory, kRegion);
  const std::jthread cutter([&](const std::stop_token& done) {
    const std::vector<std::byte> content(kRegion, kContent);
    while (!done.stop_requested()) {
      // It is whole for as long as it takes to fill it, and so mostly whole.
      if (::ftruncate(source.fd, 0) != 0 || ::ftruncate(source.fd, kRegion) != 0 ||
          ::pwrite(source.fd, content.data(), kRegion, 0) != ssize_t{kRegion})
        return;
    }
  });
  std::optional<Ends> ends;
  int arrived = 0, failed = 0;
  const auto deadline = Clock::now() + kPatience;
  for (int i = 0; i < kMessages || arrived == 0 || failed == 0; ++i) {
    if (i >= kMessages && Clock::now() > deadline) throw Failure("all or nothing was cut");
    if (!ends) ends.emplace(make_ends(lab, IBV_QPT_RC));
    // Half of them to memory that the NIC has not mapped, unless it is made shared.
    const bool own_file = i % 2 == 0;
    std::byte* const into = own_file ? target.memory : ends->b.memory.data();
    std::memset(into, 0, kBytes);
    const uint32_t rkey = own_file ? target_mr->rkey : ends->b.mr->rkey;
    SendRequest request(IBV_WR_RDMA_WRITE, 1,
                        ibv_sge{address_of(source.memory), kBytes, source_mr->lkey});
    post_ok(ends->a.qp.get(), request.remote(address_of(into), rkey));
    const std::optional<ibv_wc> completion = poll_one(ends->a.send_cq.get(), kPatience);
    if (!completion) throw Failure("no completion");
    for (const std::byte b : std::span(into, kBytes))
      if (b != std::byte{0} && b != kContent) throw Failure("what arrived was never there");
    if (completion->status != IBV_WC_SUCCESS) {
      ++failed;
      ends.reset();
    } else if (std::ranges::count(std::span(into, kBytes), kContent) != 0) {
      ++arrived;
    }
  }
}

// Atomics of the NIC and of the program on the same word lose nothing.
void counted_together(Lab& lab) {
  constexpr uint64_t kTimes = 2000;
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(4096);
  const MrPtr mr = registered(lab, memory.data(), 4096);
  expect_shared_region(memory.data());
  auto* const word = reinterpret_cast<uint64_t*>(memory.data());
  uint64_t own = 0;
  for (uint64_t i = 0; i < kTimes; ++i) {
    post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, ends.a.sge(0, 8), memory.address(),
                mr->rkey, 1);
    const auto deadline = Clock::now() + kPatience;
    ibv_wc wc;
    int polled;
    while ((polled = ibv_poll_cq(ends.a.send_cq.get(), 1, &wc)) == 0) {
      __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
      ++own;
      if (Clock::now() > deadline) throw Failure("an atomic does not complete");
    }
    if (polled < 0 || wc.status != IBV_WC_SUCCESS) throw Failure("an atomic failed");
  }
  expect_equal(*word, kTimes + own, "the sum");
}

// From here on the program has had two threads, so that nothing is made shared any more.
void with_threads(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  Memory memory(kRegion);
  MrPtr mr;
  std::thread([&] { mr = registered(lab, memory.data(), kRegion); }).join();
  if (is_shared_region(memory.data())) throw Failure("shared, although others could write to it");
  write_to(ends, memory.address(), mr->rkey, 5);
  expect_filled(memory.data(), kBytes, 5, "the target");
}

}  // namespace

std::span<const Row> shared_region_rows() {
  static constexpr Row kRows[] = {
      {"shared: private memory becomes it with its content", becomes_shared},
      {"shared: two regions with a page in common", neighbours},
      {"shared: other memory in its place", unmapped_and_mapped_anew},
      {"shared: a child has a copy", forked},
      {"shared: MADV_DONTNEED clears", given_up},
      {"shared: realloc lets it grow", grown},
      {"shared: a memfd of the program's", own_memfd},
      {"shared: a file of the program's that it has closed", own_named_file},
      {"shared: locks on files are kept", locked},
      {"shared: the last byte is written last", last_byte_last},
      {"shared: a file cut short", cut_short},
      {"shared: a file cut short that is sent", source_cut_short},
      {"shared: atomics of both", counted_together},
      {"shared: not with two threads", with_threads},
      {"shared: a file cut short while it is sent", cut_short_meanwhile},
  };
  return kRows;
}

}  // namespace rocemu::e2e
