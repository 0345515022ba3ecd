// The provider as libibverbs sees it: registration, matching, and opening. The only file that
// depends on the number of rdma-core's private ABI (ROCEMU_PABI); it is compiled once for each.
// Releases behind one number are told apart when the provider is loaded (layouts.h).
//
// libibverbs' private functions are looked up when the provider is loaded, each in the version that
// belongs to this ABI number. So the provider links nothing of libibverbs, one build machine makes
// the files for all versions, and a file that is loaded by the wrong version registers nothing.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/common/complain.h"
#include "verbs_shim/provider/common/leaves_errno.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/layouts.h"
#include "verbs_shim/provider/op_list.h"
#include "verbs_shim/provider/private_abi.h"
#include "verbs_shim/provider/queues/asked_posts.h"
#include "verbs_shim/provider/queues/queue_pair.h"

#define ROCEMU_STRING_(x) #x
#define ROCEMU_STRING(x) ROCEMU_STRING_(x)

namespace rocemu::provider {
namespace {

constexpr char kPrivateVersion[] = "IBVERBS_PRIVATE_" ROCEMU_STRING(ROCEMU_PABI);
constexpr char kRegister[] = "verbs_register_driver_" ROCEMU_STRING(ROCEMU_PABI);

struct Libibverbs {
  void (*register_driver)(const VerbsDeviceOps*);
  void* (*init_and_alloc_context)(ibv_device*, int cmd_fd, size_t bytes, verbs_context* offset,
                                  uint32_t driver_id);
  void (*uninit_context)(verbs_context*);
  void (*set_ops)(verbs_context*, const OpList*);
  int (*read_ibdev_sysfs_file)(char* text, size_t bytes, verbs_sysfs_dev*, const char* format, ...);
  int release;  // release of libibverbs, for its layouts
};
Libibverbs libibverbs;
OpList ordinary_ops;
OpList checked_ops;  // for programs that are checked

struct Device {
  VerbsDevice verbs;
  uint32_t index;  // the NIC's number for it
};

// The package version of the loaded library, from its file's name; 0 when that doesn't tell.
int library_version(const void* function) {
  Dl_info info;
  char path[PATH_MAX];
  if (dladdr(function, &info) == 0 || realpath(info.dli_fname, path) == nullptr) return 0;
  constexpr char kName[] = "libibverbs.so.1.";
  const char* name = strstr(path, kName);
  if (name == nullptr) return 0;
  const char* version = strchr(name + sizeof(kName) - 1, '.');
  return version == nullptr ? 0 : atoi(version + 1);
}

bool find_libibverbs() {
  void* library = dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return false;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    void* address = dlvsym(library, name, kPrivateVersion);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    all = all && address != nullptr;
  };
  find(libibverbs.register_driver, kRegister);
  find(libibverbs.init_and_alloc_context, "_verbs_init_and_alloc_context");
  find(libibverbs.uninit_context, "verbs_uninit_context");
  find(libibverbs.set_ops, "verbs_set_ops");
  find(libibverbs.read_ibdev_sysfs_file, "ibv_read_ibdev_sysfs_file");
  dlclose(library);
  if (!all) return false;
  const auto* function = reinterpret_cast<const void*>(libibverbs.register_driver);
  libibverbs.release = known_release(ROCEMU_PABI, library_version(function));
  return true;
}

// A device is the NIC's if its sysfs directory holds the marker, whatever the device is called.
bool read_marker(verbs_sysfs_dev* sysfs, uint32_t& index) {
  char text[16];
  if (libibverbs.read_ibdev_sysfs_file(text, sizeof(text), sysfs, ROCEMU_SYSFS_MARKER) <= 0) {
    return false;
  }
  char* end = nullptr;
  const unsigned long value = strtoul(text, &end, 10);
  index = static_cast<uint32_t>(value);
  return end != text && value < ROCEMU_NO_DEVICE;
}

bool match_device(verbs_sysfs_dev* sysfs) {
  uint32_t index;
  return read_marker(sysfs, index);
}

VerbsDevice* alloc_device(verbs_sysfs_dev* sysfs) {
  auto* device = new_object<Device>();
  if (device == nullptr) return nullptr;
  read_marker(sysfs, device->index);
  device->verbs.core_support = kCoreSupportOptionalMrAccess;
  return &device->verbs;
}

void uninit_device(VerbsDevice* device) { delete_object(reinterpret_cast<Device*>(device)); }

// Owns cmd_fd from the start, failed or not.
verbs_context* open_device(ibv_device* device, int cmd_fd, bool imported) {
  constexpr uint32_t kDriverUnknown = 0;
  const size_t offset = context_offset(libibverbs.release);
  void* allocation = libibverbs.init_and_alloc_context(
      device, cmd_fd, offset + sizeof(DeviceContext), nullptr, kDriverUnknown);
  if (allocation == nullptr) return nullptr;
  auto* verbs = static_cast<verbs_context*>(allocation);
  auto& context = *reinterpret_cast<DeviceContext*>(static_cast<uint8_t*>(allocation) + offset);
  context.allocation = allocation;
  const uint32_t index = reinterpret_cast<Device*>(device)->index;
  if (const int error = open_context(context, index, imported); error != 0) {
    libibverbs.uninit_context(verbs);
    free(allocation);
    errno = error;
    return nullptr;
  }
  libibverbs.set_ops(verbs, checked::start(context) ? &checked_ops : &ordinary_ops);
  remember_posts(context);
  return verbs;
}

verbs_context* alloc_context(ibv_device* device, int cmd_fd, void*) {
  return open_device(device, cmd_fd, false);
}

verbs_context* import_context(ibv_device* device, int cmd_fd) {
  return open_device(device, cmd_fd, true);
}

constexpr VerbsMatchEntry kNoMatches[] = {{}};

VerbsDeviceOps device_ops = {
    .name = "rocemu",
    // The version that counts is the control protocol's, which is compared when a device is opened.
    .match_min_abi_version = 0,
    .match_max_abi_version = UINT32_MAX,
    .match_table = kNoMatches,
    .static_providers = nullptr,
    .match_device = match_device,
    .alloc_context = LeavesErrno<&alloc_context>::call,
    .import_context = LeavesErrno<&import_context>::call,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};

// The members behind import_context move up.
void drop_import_context() {
  auto* at = reinterpret_cast<uint8_t*>(&device_ops.import_context);
  constexpr size_t kBehind = offsetof(VerbsDeviceOps, alloc_device);
  memmove(at, at + sizeof(device_ops.import_context), sizeof(device_ops) - kBehind);
}

__attribute__((constructor)) void on_load() {
  if (find_libibverbs()) {
    ordinary_ops = list_ops(libibverbs.release, false);
    checked_ops = list_ops(libibverbs.release, true);
    if (!has_import_context(libibverbs.release)) drop_import_context();
    libibverbs.register_driver(&device_ops);
  } else {
    complain(
        "this provider is for a libibverbs with %s, and the loaded one is another: remove it "
        "from RDMAV_DRIVERS",
        kPrivateVersion);
  }
}

}  // namespace

void free_context(ibv_context* context) {
  DeviceContext& device = to_context(context);
  void* allocation = device.allocation;
  close_context(device);
  libibverbs.uninit_context(static_cast<verbs_context*>(allocation));
  free(allocation);
}

void* place_of_flush(QueuePair& queue) {
  return libibverbs.release < kFirstWithFlush ? nullptr : queue.verbs.room + kFlushOffset;
}

void mark_extended(ibv_qp* qp) {
  uint8_t* mask = to_queue_pair(qp).verbs.room + qp_comp_mask_offset(libibverbs.release);
  memcpy(mask, &kVerbsQpEx, sizeof(kVerbsQpEx));
}

}  // namespace rocemu::provider
