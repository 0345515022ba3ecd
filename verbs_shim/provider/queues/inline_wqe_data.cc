#include "verbs_shim/provider/queues/inline_wqe_data.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "verbs_shim/provider/common/small_copy.h"
#include "verbs_shim/provider/common/valgrind.h"

namespace rocemu::provider {
namespace {

constexpr uintptr_t kWordBytes = 8;

// There every call of is_readable() is a complaint.
const bool under_valgrind = valgrind::is_running();

bool is_write_or_send(uint8_t opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return true;
    default:
      return false;
  }
}

// True when the page that holds `address` can be read. A program may have unmapped what it has
// registered, and a fault here would be its end. This is the cheapest call that reads a word for
// the kernel before it sees that it has nothing to do: rt_sigprocmask of a kind that there is not.
bool is_readable(uintptr_t address) {
  const int errno_before = errno;
  syscall(SYS_rt_sigprocmask, ~0, address & ~(kWordBytes - 1), nullptr, kWordBytes);
  const bool readable = errno == EINVAL;
  errno = errno_before;
  return readable;
}

}  // namespace

void add_inline_data(const WorkRing& ring, rocemu_send_wqe& wqe, const ibv_sge* sges) {
  static_assert(ROCEMU_INLINE_WQE_DATA_MAX <= kSmallCopyMax);
  static_assert(sizeof(wqe.compare_add) + sizeof(wqe.swap) == ROCEMU_INLINE_WQE_DATA_MAX);
  static_assert(offsetof(rocemu_send_wqe, swap) ==
                offsetof(rocemu_send_wqe, compare_add) + sizeof(wqe.compare_add));
  if (wqe.num_sge != 1 || under_valgrind || !is_write_or_send(wqe.opcode)) return;
  // The data that a READ or an atomic before it is to bring is not there yet.
  if ((wqe.flags & ROCEMU_SEND_FENCE) != 0) return;
  const uintptr_t first = sges->addr;
  const uint32_t bytes = sges->length;
  if (bytes == 0 || bytes > ROCEMU_INLINE_WQE_DATA_MAX || first > UINTPTR_MAX - bytes) return;
  const uintptr_t last = first + bytes - 1;
  if (ring.last_has_others_before()) return;
  constexpr uintptr_t kSmallestPage = 4096;
  if (!is_readable(first)) return;
  if (first / kSmallestPage != last / kSmallestPage && !is_readable(last)) return;
  copy_small(reinterpret_cast<uint8_t*>(&wqe) + offsetof(rocemu_send_wqe, compare_add),
             reinterpret_cast<const void*>(first), bytes);
  wqe.flags |= ROCEMU_SEND_INLINE_WQE_DATA;
}

}  // namespace rocemu::provider
