// Memory regions.
#include "verbs_shim/abi/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/valgrind.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/memory/mapped_range.h"
#include "verbs_shim/provider/memory/memory_region.h"
#include "verbs_shim/provider/memory/region_file.h"
#include "verbs_shim/provider/queues/inline_cqe_data.h"

namespace rocemu::provider {
namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;

// IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT of rdma-core from 45 on, which the NIC grants or does
// not.
constexpr unsigned kFlush = 1u << 8 | 1u << 9;

// Hints, which a device may leave aside: huge pages, and the range that verbs sets apart for them.
constexpr unsigned kHints = unsigned{IBV_ACCESS_HUGETLB} | IBV_ACCESS_OPTIONAL_RANGE;

// ibv_reg_mr(3): remote write and remote atomic need local write.
bool is_consistent(unsigned access) {
  if ((access & ~(kKnownAccess | kFlush | kHints)) != 0) return false;
  const bool remote_changes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return !remote_changes || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

// Checks that the memory is there, but for on-demand regions, which may be registered before. The
// NIC reaches the memory of the process that opened the device, not of its children.
int check_registration(const DeviceContext& context, const void* address, size_t bytes,
                       unsigned access, Mapping& mapping) {
  if (!context.state.connection.is_owner()) return EIO;
  if (!is_consistent(access)) return EINVAL;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return 0;
  return check_mapped(reinterpret_cast<uintptr_t>(address), bytes,
                      (access & IBV_ACCESS_LOCAL_WRITE) != 0, mapping);
}

// The NIC writes where valgrind does not see it. On-demand memory may come later.
void expect_writes(const void* address, size_t bytes, unsigned access) {
  if ((access & IBV_ACCESS_LOCAL_WRITE) != 0 && (access & IBV_ACCESS_ON_DEMAND) == 0)
    valgrind::expect_data(address, bytes);
}

template <typename Request>
void describe(Request& request, ibv_pd* pd, const void* address, size_t bytes, uint64_t iova,
              unsigned access) {
  request.pd = pd->handle;
  request.access = access & ~kHints;
  request.address = reinterpret_cast<uintptr_t>(address);
  request.length_bytes = bytes;
  request.iova = iova;
}

// A region that the NIC maps. Null where that can't be, and it has to reach the memory otherwise.
VerbsMr* register_file(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, unsigned access,
                       Mapping& mapping, rocemu_reg_mr_reply& reply) {
  const auto from = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0 || mapping.to == 0 || mapping.to - from < bytes) return nullptr;
  const bool make = !mapping.shared && wants_shared_memory();
  const RegionFile file = make ? make_region_file(from, bytes, mapping) : find_region_file(mapping);
  if (!file) return nullptr;
  const int fd = file.get();
  rocemu_reg_file_mr request = {};
  describe(request, pd, address, bytes, iova, access);
  request.file_offset_bytes = mapping.offset_bytes + (from - mapping.from);
  request.file_device = mapping.device;
  request.file_inode = mapping.inode;
  return make_region(pd, ROCEMU_OP_REG_FILE_MR, request, reply, {&fd, 1});
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Makes the pages be there before the NIC asks for them. That it fails is for whoever uses them to
// find out: this is advice.
void populate(uint64_t address, size_t bytes, bool for_writing) {
  const uint64_t from = address & ~(page_bytes() - 1);
  const int errno_before = errno;
  madvise(reinterpret_cast<void*>(from), address + bytes - from,
          for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  errno = errno_before;
}

}  // namespace

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, int access) {
  const auto flags = static_cast<unsigned>(access);
  // The kernel's ib_uverbs_reg_mr asks for the same: pages are translated, and nothing within them.
  if ((reinterpret_cast<uintptr_t>(address) ^ iova) % page_bytes() != 0) {
    errno = EINVAL;
    return nullptr;
  }
  Mapping mapping;
  if (const int error = check_registration(to_context(pd->context), address, bytes, flags, mapping);
      error != 0) {
    errno = error;
    return nullptr;
  }
  rocemu_reg_mr_reply reply;
  VerbsMr* mr = register_file(pd, address, bytes, iova, flags, mapping, reply);
  if (mr == nullptr) {
    rocemu_reg_mr request = {};
    describe(request, pd, address, bytes, iova, flags);
    mr = make_region(pd, ROCEMU_OP_REG_MR, request, reply);
    if (mr == nullptr) return nullptr;
    if (wants_shared_memory()) note_unshared(mr, request.address, bytes);
  }
  expect_writes(address, bytes, flags);
  mr->mr.addr = address;
  mr->mr.length = bytes;
  mr->mr.handle = reply.mr;
  mr->access = access;
  return &mr->mr;
}

int rereg_mr(VerbsMr* mr, int flags, ibv_pd* pd, void* address, size_t bytes, int access) {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool other_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const auto access_after = static_cast<unsigned>(other_access ? access : mr->access);
  int error = (flags & IBV_REREG_MR_CHANGE_PD) != 0 && pd == nullptr ? EINVAL : 0;
  if (error == 0) {
    Mapping mapping;
    error = check_registration(to_context(mr->mr.context), moves ? address : mr->mr.addr,
                               moves ? bytes : mr->mr.length, access_after, mapping);
  }
  if (error == 0) {
    rocemu_rereg_mr request = {};
    request.mr = mr->mr.handle;
    request.flags = static_cast<uint32_t>(flags);
    request.pd = pd == nullptr ? 0 : pd->handle;
    request.access = access_after & ~kHints;
    request.address = request.iova = reinterpret_cast<uintptr_t>(address);
    request.length_bytes = bytes;
    rocemu_reg_mr_reply reply;
    error = to_context(mr->mr.context).call(ROCEMU_OP_REREG_MR, request, reply);
  }
  if (error != 0) {
    errno = error;
    return error;
  }
  // libibverbs changes address and length when this is done.
  deliver_untaken(to_context(mr->mr.context), reinterpret_cast<uintptr_t>(mr->mr.addr),
                  mr->mr.length);
  mr->access = static_cast<int>(access_after);
  expect_writes(moves ? address : mr->mr.addr, moves ? bytes : mr->mr.length, access_after);
  if (moves && wants_shared_memory()) {
    forget_unshared(mr);
    note_unshared(mr, reinterpret_cast<uintptr_t>(address), bytes);
  }
  return 0;
}

int dereg_mr(VerbsMr* mr) {
  rocemu_handle_message request = {};
  request.handle = mr->mr.handle;
  rocemu_handle_message reply;
  DeviceContext& context = to_context(mr->mr.context);
  const int error = context.call(ROCEMU_OP_DEREG_MR, request, reply);
  // Where there is no NIC any more the region has gone as well.
  if (error != 0 && !context.state.connection.lost()) return error;
  deliver_untaken(context, reinterpret_cast<uintptr_t>(mr->mr.addr), mr->mr.length);
  if (error != 0) return error;
  if (wants_shared_memory()) forget_unshared(mr);
  delete_object(mr);
  return 0;
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  rocemu_handle_message request = {};
  request.handle = pd->handle;
  rocemu_reg_mr_reply reply;
  VerbsMr* mr = make_region(pd, ROCEMU_OP_ALLOC_NULL_MR, request, reply);
  if (mr == nullptr) return nullptr;
  mr->mr.length = SIZE_MAX;
  mr->mr.handle = reply.mr;
  mr->mr.rkey = 0;  // it is for local use alone
  mr->type = kNullMr;
  return &mr->mr;
}

// ibv_advise_mr(3).
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* ranges,
              uint32_t count) {
  const bool known = advice == IBV_ADVISE_MR_ADVICE_PREFETCH ||
                     advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ||
                     advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
  if (!known) return EOPNOTSUPP;
  if ((flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || count == 0) return EINVAL;
  for (uint32_t i = 0; i < count; ++i) {
    rocemu_check_prefetch request = {};
    request.pd = pd->handle;
    request.lkey = ranges[i].lkey;
    request.iova = ranges[i].addr;
    request.length_bytes = ranges[i].length;
    request.for_writing = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? 1 : 0;
    rocemu_check_prefetch_reply reply;
    const int error = to_context(pd->context).call(ROCEMU_OP_CHECK_PREFETCH, request, reply);
    if (error != 0) return error;
    if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && ranges[i].length > 0) {
      populate(reply.address, ranges[i].length, request.for_writing != 0);
    }
  }
  return 0;
}

}  // namespace rocemu::provider
