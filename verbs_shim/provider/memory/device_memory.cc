// Device memory: a memfd that the NIC made, which this program sees as well (ibv_alloc_dm(3)).
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"
#include "verbs_shim/exchange/shared_memory.h"
#include "verbs_shim/provider/common/leaves_errno.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/memory/memory_region.h"

namespace rocemu::provider {
namespace {

struct DeviceMemory {
  // rdma-core's struct verbs_dm.
  struct {
    ibv_dm dm;
    uint32_t handle;
  } verbs;
  exchange::SharedMemory memory;
  uint64_t length_bytes;
};
static_assert(offsetof(DeviceMemory, verbs.handle) == 32);

DeviceMemory& to_memory(ibv_dm* dm) { return *reinterpret_cast<DeviceMemory*>(dm); }

// Copies are of whole words, as on the devices that have such memory.
constexpr uint64_t kWord = 4;

int check_range(const DeviceMemory& memory, uint64_t offset, size_t length) {
  if (offset % kWord != 0 || length % kWord != 0) return EINVAL;
  return offset <= memory.length_bytes && length <= memory.length_bytes - offset ? 0 : EFAULT;
}

uint8_t* at(const DeviceMemory& memory, uint64_t offset) {
  return static_cast<uint8_t*>(memory.memory.address) + offset;
}

int copy_to(ibv_dm* dm, uint64_t offset, const void* from, size_t length) {
  const DeviceMemory& memory = to_memory(dm);
  const int error = check_range(memory, offset, length);
  if (error == 0) memcpy(at(memory, offset), from, length);
  return error;
}

int copy_from(void* to, ibv_dm* dm, uint64_t offset, size_t length) {
  const DeviceMemory& memory = to_memory(dm);
  const int error = check_range(memory, offset, length);
  if (error == 0) memcpy(to, at(memory, offset), length);
  return error;
}

void fill(DeviceMemory& memory, ibv_context* context, uint32_t handle) {
  memory.verbs.dm.context = context;
  memory.verbs.dm.memcpy_to_dm = LeavesErrno<&copy_to>::call;
  memory.verbs.dm.memcpy_from_dm = LeavesErrno<&copy_from>::call;
  memory.verbs.handle = memory.verbs.dm.handle = handle;
}

int free_in_nic(DeviceContext& context, uint32_t handle) {
  rocemu_handle_message request = {};
  request.handle = handle;
  rocemu_handle_message reply;
  return context.call(ROCEMU_OP_FREE_DM, request, reply);
}

int allocate(DeviceContext& context, const ibv_alloc_dm_attr& attr, DeviceMemory& memory) {
  rocemu_alloc_dm request = {};
  request.length_bytes = attr.length;
  request.log_align = attr.log_align_req;
  rocemu_alloc_dm_reply reply;
  ReceivedFds received;
  int error = context.call(ROCEMU_OP_ALLOC_DM, request, reply, &received);
  if (error != 0) return error;
  error = reply.memory_bytes >= attr.length
              ? memory.memory.map(received.get(0), reply.memory_bytes, PROT_READ | PROT_WRITE)
              : EPROTO;
  if (error != 0) free_in_nic(context, reply.dm);
  memory.verbs.handle = reply.dm;
  memory.length_bytes = attr.length;
  return error;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  int error = attr->comp_mask != 0 ? EINVAL : 0;
  auto* memory = error == 0 ? new_object<DeviceMemory>() : nullptr;
  if (error == 0 && memory == nullptr) error = ENOMEM;
  if (error == 0) error = allocate(to_context(context), *attr, *memory);
  if (error != 0) {
    if (memory != nullptr) delete_object(memory);
    errno = error;
    return nullptr;
  }
  fill(*memory, context, memory->verbs.handle);
  return &memory->verbs.dm;
}

ibv_dm* import_dm(ibv_context* context, uint32_t handle) {
  auto* memory = new_object<DeviceMemory>();
  if (memory == nullptr) return nullptr;
  rocemu_handle_message request = {};
  request.handle = handle;
  rocemu_import_dm_reply reply;
  ReceivedFds received;
  DeviceContext& device = to_context(context);
  int error = device.call(ROCEMU_OP_IMPORT_DM, request, reply, &received);
  if (error == 0) {
    error = memory->memory.map(received.get(0), reply.length_bytes, PROT_READ | PROT_WRITE);
    if (error != 0) free_in_nic(device, reply.dm);
  }
  if (error != 0) {
    delete_object(memory);
    errno = error;
    return nullptr;
  }
  memory->length_bytes = reply.length_bytes;
  fill(*memory, context, reply.dm);
  return &memory->verbs.dm;
}

void unimport_dm(ibv_dm* dm) {
  DeviceMemory& memory = to_memory(dm);
  free_in_nic(to_context(dm->context), dm->handle);
  memory.memory.unmap();
  delete_object(&memory);
}

int free_dm(ibv_dm* dm) {
  DeviceMemory& memory = to_memory(dm);
  if (const int error = free_in_nic(to_context(dm->context), dm->handle); error != 0) return error;
  memory.memory.unmap();
  delete_object(&memory);
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t bytes, unsigned access) {
  rocemu_reg_dm_mr request = {};
  request.pd = pd->handle;
  request.dm = dm->handle;
  request.access = access;
  request.offset_bytes = offset;
  request.length_bytes = bytes;
  rocemu_reg_mr_reply reply;
  VerbsMr* mr = make_region(pd, ROCEMU_OP_REG_DM_MR, request, reply);
  if (mr == nullptr) return nullptr;
  mr->mr.length = bytes;
  mr->mr.handle = reply.mr;
  mr->access = static_cast<int>(access);
  return &mr->mr;
}

}  // namespace rocemu::provider
