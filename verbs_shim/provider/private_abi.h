// Declares those of rdma-core's provider-private structures that the provider needs and that are
// the same in all its releases; layouts.h has the others. Distributions package only
// <infiniband/verbs.h>.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

struct verbs_sysfs_dev;  // handed back to ibv_read_ibdev_sysfs_file

namespace rocemu::provider {

// 328 bytes on x86-64 and 336 on arm64, whose mutex is larger.
static_assert(sizeof(ibv_context) == 288 + sizeof(pthread_mutex_t));

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

// verbs_qp.comp_mask: the QP was made with ibv_qp_ex's functions.
inline constexpr uint32_t kVerbsQpEx = 2;

}  // namespace rocemu::provider
