// Memory whose faults somebody answers who does not: whoever moves it waits.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/hostile/fuse.h"
#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr size_t kBytes = size_t{1} << 16;
constexpr unsigned kHeirLivesS = 120;  // longer than any test
// How long the NIC bears with it (emulator/daemon/move_watchdog.h), twice where others hold it,
// too.
constexpr double kUserfaultWaitsS = 0.1;
constexpr double kServerWaitsS = 0.5;

// One that catches the kernel's faults, too, which not every user may have; -1 with errno.
int open_userfaultfd() {
  return static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
}

std::string userfaultfd_missing() {
  const int fd = open_userfaultfd();
  if (fd < 0) return "userfaultfd for the kernel's faults (root, or vm.unprivileged_userfaultfd=1)";
  ::close(fd);
  return {};
}

// From now on nobody gets a byte of it.
void withhold(void* address) {
  const int fd = open_userfaultfd();
  uffdio_api api{};
  api.api = UFFD_API;
  if (fd < 0 || ::ioctl(fd, UFFDIO_API, &api) != 0) fail_errno(errno, "userfaultfd");
  uffdio_register range{};
  range.range = {reinterpret_cast<uintptr_t>(address), kBytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (::ioctl(fd, UFFDIO_REGISTER, &range) != 0) fail_errno(errno, "UFFDIO_REGISTER");
}

// The NIC is to fetch what is there, and nobody else touches it.
[[noreturn]] void send(Link& link, void* address, const ibv_mr* mr) {
  SendRequest request(IBV_WR_RDMA_WRITE, 1,
                      ibv_sge{reinterpret_cast<uintptr_t>(address), 4096, mr->lkey});
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  post_ok(link.a.qp.get(), request);
  for (;;) ::pause();
}

// Goes on with a copy of all descriptors when the NIC has killed this process.
void leave_an_heir() {
  if (::fork() != 0) return;
  ::alarm(kHeirLivesS);
  for (;;) ::pause();
}

void* map(int flags, int fd) {
  void* const address = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (address == MAP_FAILED) fail_errno(errno, "mmap");
  return address;
}

enum class When { before_registration, after_registration };

void send_withheld_memory(const std::string& device, When when, bool heir) {
  const Lab lab(open_device(device, 1), open_device(device, 1));
  Link link = lab.make_link();
  void* const address = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (when == When::before_registration) withhold(address);
  const MrPtr mr = register_memory(lab.a().pd.get(), address, kBytes, kAllRights);
  if (!mr) fail_errno(errno, "ibv_reg_mr");
  if (when == When::after_registration) withhold(address);
  if (heir) leave_an_heir();
  send(link, address, mr.get());
}

void withheld_before(const std::string& device) {
  send_withheld_memory(device, When::before_registration, false);
}
void withheld_after(const std::string& device) {
  send_withheld_memory(device, When::after_registration, false);
}
void withheld_by_heir(const std::string& device) {
  send_withheld_memory(device, When::after_registration, true);
}

// A new program after each that the NIC has killed.
void withheld_again_and_again(const std::string& device) {
  for (;;) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      withheld_after(device);
    }
    ::waitpid(child, nullptr, 0);
  }
}

// Its server lives on when the NIC has killed this process.
void send_fuse_memory(const std::string& device) {
  const std::string where = mount_point();
  const int fuse = mount_fuse(where.c_str());
  if (fuse < 0) fail_errno(errno, "mounting FUSE");
  if (::fork() == 0) {
    ::alarm(kHeirLivesS);
    serve_fuse(fuse);
  }
  ::close(fuse);
  const int file = must_fd(::open(where.c_str(), O_RDWR | O_CLOEXEC), where.c_str());
  struct stat size_is_known;
  if (::fstat(file, &size_is_known) != 0) fail_errno(errno, "fstat");
  const Lab lab(open_device(device, 1), open_device(device, 1));
  Link link = lab.make_link();
  void* const address = map(MAP_PRIVATE, file);
  const MrPtr mr = register_memory(lab.a().pd.get(), address, 4096, kAllRights);
  if (!mr) fail_errno(errno, "ibv_reg_mr");
  send(link, address, mr.get());
}

}  // namespace

std::span<const Deed> memory_deeds() {
  static constexpr Deed kDeeds[] = {
      {"userfaultfd", userfaultfd_missing, withheld_after, kUserfaultWaitsS},
      {"userfaultfd-before", userfaultfd_missing, withheld_before, kUserfaultWaitsS},
      {"userfaultfd-heir", userfaultfd_missing, withheld_by_heir, kUserfaultWaitsS},
      {"userfaultfd-again", userfaultfd_missing, withheld_again_and_again, kUserfaultWaitsS},
      {"fuse-memory", fuse_missing, send_fuse_memory, kServerWaitsS}};
  return kDeeds;
}

}  // namespace rocemu::e2e
