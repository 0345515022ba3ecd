// Protection domains and memory regions.
#include <errno.h>
#include <stdint.h>

#include "verbs_shim/provider/context.h"
#include "verbs_shim/provider/mapped_range.h"
#include "verbs_shim/provider/new_object.h"
#include "verbs_shim/provider/verbs_ops.h"

namespace rocemu::provider {
namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;

// Hints, which a device may leave aside: huge pages, and the range that verbs sets apart for them.
constexpr unsigned kHints = unsigned{IBV_ACCESS_HUGETLB} | IBV_ACCESS_OPTIONAL_RANGE;

// ibv_reg_mr(3): remote write and remote atomic need local write.
bool is_consistent(unsigned access) {
  if ((access & ~(kKnownAccess | kHints)) != 0) return false;
  const bool remote_changes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return !remote_changes || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

int destroy(ibv_context* context, rocemu_op op, uint32_t handle) {
  rocemu_handle_message request = {};
  request.handle = handle;
  rocemu_handle_message reply;
  return to_context(context).call(op, request, reply);
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* context) {
  auto* pd = new_object<ibv_pd>();
  if (pd == nullptr) return nullptr;
  rocemu_handle_message request = {};
  rocemu_handle_message reply;
  if (const int error = to_context(context).call(ROCEMU_OP_ALLOC_PD, request, reply); error != 0) {
    delete_object(pd);
    errno = error;
    return nullptr;
  }
  pd->context = context;
  pd->handle = reply.handle;
  return pd;
}

int dealloc_pd(ibv_pd* pd) {
  const int error = destroy(pd->context, ROCEMU_OP_DEALLOC_PD, pd->handle);
  if (error == 0) delete_object(pd);
  return error;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, int access) {
  const auto flags = static_cast<unsigned>(access);
  int error = is_consistent(flags) ? 0 : EINVAL;
  // On-demand regions may be registered before their memory is there.
  if (error == 0 && (flags & IBV_ACCESS_ON_DEMAND) == 0) {
    error = check_mapped(reinterpret_cast<uintptr_t>(address), bytes,
                         (flags & IBV_ACCESS_LOCAL_WRITE) != 0);
  }
  auto* mr = error == 0 ? new_object<VerbsMr>() : nullptr;
  if (error == 0 && mr == nullptr) error = ENOMEM;
  rocemu_reg_mr_reply reply;
  if (error == 0) {
    rocemu_reg_mr request = {};
    request.pd = pd->handle;
    request.access = flags & ~kHints;
    request.address = reinterpret_cast<uintptr_t>(address);
    request.length_bytes = bytes;
    request.iova = iova;
    error = to_context(pd->context).call(ROCEMU_OP_REG_MR, request, reply);
  }
  if (error != 0) {
    if (mr != nullptr) delete_object(mr);
    errno = error;
    return nullptr;
  }
  mr->mr.context = pd->context;
  mr->mr.pd = pd;
  mr->mr.addr = address;
  mr->mr.length = bytes;
  mr->mr.handle = reply.mr;
  mr->mr.lkey = reply.lkey;
  mr->mr.rkey = reply.rkey;
  mr->access = access;
  return &mr->mr;
}

int dereg_mr(VerbsMr* mr) {
  const int error = destroy(mr->mr.context, ROCEMU_OP_DEREG_MR, mr->mr.handle);
  if (error == 0) delete_object(mr);
  return error;
}

}  // namespace rocemu::provider
