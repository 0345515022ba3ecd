// Declares those of rdma-core's provider-private structures that the provider needs, for the
// version of the private ABI that ROCEMU_PABI names (34: rdma-core 34 to 56, 57: 57 and 58, 59: 59
// to 63, 64, 65). Distributions package only <infiniband/verbs.h>; these are declared from the
// layouts that debug information of each version shows, and asserted.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <time.h>

#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/common/verbs_ops.h"

#if ROCEMU_PABI != 34 && ROCEMU_PABI != 57 && ROCEMU_PABI != 59 && ROCEMU_PABI != 64 && \
    ROCEMU_PABI != 65
#error "ROCEMU_PABI names no known version of rdma-core's private ABI"
#endif

struct verbs_sysfs_dev;  // handed back to ibv_read_ibdev_sysfs_file

#define ROCEMU_PABI_JOIN_(a, b) a##b
#define ROCEMU_PABI_JOIN(a, b) ROCEMU_PABI_JOIN_(a, b)
#define ROCEMU_PABI_NAMESPACE ROCEMU_PABI_JOIN(pabi, ROCEMU_PABI)

namespace rocemu::provider::ROCEMU_PABI_NAMESPACE {

// struct verbs_context ends in the public struct ibv_context; the functions of extended verbs,
// which libibverbs fills, stand before it and grow downwards.
#if ROCEMU_PABI >= 64
inline constexpr size_t kContextOffset = 368;
#elif ROCEMU_PABI >= 59
inline constexpr size_t kContextOffset = 344;
#else
inline constexpr size_t kContextOffset = 320;
#endif
static_assert(sizeof(ibv_context) == 328);

struct VerbsContextOps {
#define ROCEMU_OP(name) decltype(&provider::name) name;
#define ROCEMU_DATA_OP(name) ROCEMU_OP(name)
#define ROCEMU_EVENT_OP(name) decltype(&checked::name) name;
#define ROCEMU_NO_OP(name) void (*name)();
#include "verbs_shim/provider/op_table.inc"
#undef ROCEMU_OP
#undef ROCEMU_DATA_OP
#undef ROCEMU_EVENT_OP
#undef ROCEMU_NO_OP
};

struct VerbsMatchEntry {
  void* driver_data;
  uint64_t key;
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;  // 0 ends a table
};
static_assert(sizeof(VerbsMatchEntry) == 24);

struct VerbsDevice;

struct VerbsDeviceOps {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const VerbsMatchEntry* match_table;
  const VerbsDeviceOps** static_providers;
  bool (*match_device)(verbs_sysfs_dev* sysfs);
  verbs_context* (*alloc_context)(ibv_device* device, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device* device, int cmd_fd);
  VerbsDevice* (*alloc_device)(verbs_sysfs_dev* sysfs);
  void (*uninit_device)(VerbsDevice* device);
};
static_assert(sizeof(VerbsDeviceOps) == 72);
static_assert(offsetof(VerbsDeviceOps, match_device) == 32);
static_assert(offsetof(VerbsDeviceOps, alloc_device) == 56);

struct VerbsDevice {
  ibv_device device;
  const VerbsDeviceOps* ops;
  int refcount;
  void* list_entry[2];
  verbs_sysfs_dev* sysfs;
  uint64_t core_support;
};
static_assert(sizeof(VerbsDevice) == 712);
static_assert(offsetof(VerbsDevice, ops) == 664);
static_assert(offsetof(VerbsDevice, sysfs) == 696);
static_assert(offsetof(VerbsDevice, core_support) == 704);

// VerbsDevice::core_support: the provider takes optional access flags
// (IBV_ACCESS_OPTIONAL_RANGE).
inline constexpr uint64_t kCoreSupportOptionalMrAccess = 1;

// The offset of comp_mask in struct verbs_qp, an ibv_qp_ex with private members behind it.
// ibv_qp_ex grew without a new PABI number, so for 34 the version of the running library decides:
// its package number, the last part of libibverbs.so.1.14.NN.0; 0 when it is not known.
constexpr size_t qp_comp_mask_offset(int library_version) {
  if (ROCEMU_PABI > 34) return 360;
  if (library_version == 0) return sizeof(ibv_qp_ex);
  if (library_version < 44) return 344;
  return library_version < 45 ? 352 : 360;
}

// verbs_qp.comp_mask: the QP was made with ibv_qp_ex's functions.
inline constexpr uint32_t kVerbsQpEx = 2;

}  // namespace rocemu::provider::ROCEMU_PABI_NAMESPACE
