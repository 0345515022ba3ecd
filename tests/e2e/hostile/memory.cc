// Memory whose faults somebody answers who does not: whoever moves it waits.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr size_t kBytes = size_t{1} << 16;

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

void send_withheld_memory(const std::string& device) {
  const Lab lab(open_device(device, 1), open_device(device, 1));
  Link link = lab.make_link();
  void* const address =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail_errno(errno, "mmap");
  const MrPtr mr = register_memory(lab.a().pd.get(), address, kBytes, kAllRights);
  if (!mr) fail_errno(errno, "ibv_reg_mr");
  withhold(address);
  SendRequest request(IBV_WR_RDMA_WRITE, 1,
                      ibv_sge{reinterpret_cast<uintptr_t>(address), 4096, mr->lkey});
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  post_ok(link.a.qp.get(), request);
  for (;;) ::pause();
}

constexpr Deed kDeeds[] = {
    {"userfaultfd", userfaultfd_missing, send_withheld_memory, /*waits_s=*/3}};

}  // namespace

std::span<const Deed> memory_deeds() { return kDeeds; }

}  // namespace rocemu::e2e
