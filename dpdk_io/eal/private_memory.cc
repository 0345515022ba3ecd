#include "dpdk_io/eal/private_memory.h"

#include <errno.h>
#include <rte_memory.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace rocemu::dpdk_io {
namespace {

// DPDK's name for its memory without hugepages.
constexpr std::string_view kDpdkMemory = "nohuge";

std::atomic<bool> memory_is_private{false};

int ask_for_list(const rte_memseg_list* list, void*) {
  // An error means that the kernel was built without large pages.
  ::madvise(list->base_va, list->len, MADV_HUGEPAGE);
  return 0;
}

}  // namespace

PrivateMemory::PrivateMemory(bool wanted) { memory_is_private.store(wanted); }

PrivateMemory::~PrivateMemory() { memory_is_private.store(false); }

void ask_for_large_pages() { rte_memseg_list_walk(ask_for_list, nullptr); }

}  // namespace rocemu::dpdk_io

extern "C" {

__attribute__((visibility("default"))) int memfd_create(const char* name, unsigned flags) noexcept {
  using namespace rocemu::dpdk_io;
  if (memory_is_private.load(std::memory_order_relaxed) && name != nullptr && name == kDpdkMemory) {
    errno = ENOSYS;
    return -1;
  }
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}
}
