#include "verbs_shim/provider/checked/checker.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/provider/checked/extended.h"
#include "verbs_shim/provider/common/complain.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/queues/completion_queue.h"

namespace rocemu::provider::checked {

const rocemu_check_hooks* hooks = nullptr;

namespace {

bool is_wanted() {
  const char* names = getenv(ROCEMU_ENV_CHECK);
  return names != nullptr && names[0] != '\0' && strcmp(names, "0") != 0;
}

int control(ibv_context* context, uint32_t op, void* request, size_t request_bytes, void* reply,
            size_t reply_bytes) {
  return to_context(context).state.connection.call_unknown(
      op, static_cast<rocemu_header*>(request), request_bytes, static_cast<rocemu_header*>(reply),
      reply_bytes);
}

int has_completions(ibv_cq* cq) { return to_queue(cq).ring.looks_empty() ? 0 : 1; }

constexpr rocemu_check_services kServices = {control, has_completions};

// The checker stands beside this library.
bool own_folder(char (&path)[PATH_MAX]) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&start), &info) == 0 ||
      realpath(info.dli_fname, path) == nullptr) {
    return false;
  }
  char* slash = strrchr(path, '/');
  if (slash == nullptr) return false;
  slash[1] = '\0';
  return strlen(path) + sizeof(ROCEMU_CHECK_LIBRARY) <= sizeof(path);
}

const rocemu_check_hooks* load() {
  char path[PATH_MAX];
  if (!own_folder(path)) {
    complain("can't tell where " ROCEMU_CHECK_LIBRARY " is: the program runs unchecked");
    return nullptr;
  }
  strcat(path, ROCEMU_CHECK_LIBRARY);
  // It is never unloaded: its hooks are called until the process ends.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* entry = library == nullptr ? nullptr : dlsym(library, ROCEMU_CHECK_START);
  if (entry == nullptr) {
    complain("can't load the checker, the program runs unchecked: %s", dlerror());
    return nullptr;
  }
  return reinterpret_cast<decltype(&rocemu_check_start_v1)>(entry)(&kServices);
}

Mutex load_lock;
bool is_loaded = false;

// ibv_query_device has no word for it.
uint32_t max_inline_data(DeviceContext& context) {
  struct {
    rocemu_header header;
  } request;
  rocemu_device_attr reply;
  return context.call(ROCEMU_OP_QUERY_DEVICE, request, reply) == 0 ? reply.max_inline_data : 0;
}

}  // namespace

bool start(DeviceContext& context) {
  if (!is_wanted()) return false;
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_open_device");
  {
    Lock lock(load_lock);
    if (!is_loaded) {
      remember_poll_functions();
      remember_work_request_functions();
      hooks = load();
    }
    is_loaded = true;
  }
  if (hooks == nullptr) return false;
  context.state.checks = hooks;
  ibv_device_attr_ex attr = {};
  query_device_ex(&context.verbs, nullptr, &attr, sizeof(attr));
  hooks->context_opened(&at, &context.verbs, &attr.orig_attr, max_inline_data(context));
  return true;
}

}  // namespace rocemu::provider::checked
