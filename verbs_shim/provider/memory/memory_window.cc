// Memory windows. They are bound by send requests: post.cc, work_request.cc.
#include "verbs_shim/provider/queues/memory_window.h"

#include <errno.h>

#include "verbs_shim/abi/memory.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  auto* window = new_object<MemoryWindow>();
  if (window == nullptr) return nullptr;
  rocemu_alloc_mw request = {};
  request.pd = pd->handle;
  request.type = type;
  rocemu_reg_mr_reply reply;
  const int error = to_context(pd->context).call(ROCEMU_OP_ALLOC_MW, request, reply);
  if (error != 0) {
    delete_object(window);
    errno = error;
    return nullptr;
  }
  ibv_mw& mw = window->mw;
  mw.context = pd->context;
  mw.pd = pd;
  mw.rkey = window->key = reply.rkey;
  mw.handle = reply.mr;
  mw.type = type;
  return &mw;
}

int dealloc_mw(ibv_mw* mw) {
  rocemu_handle_message request = {};
  request.handle = mw->handle;
  rocemu_handle_message reply;
  const int error = to_context(mw->context).call(ROCEMU_OP_DEALLOC_MW, request, reply);
  if (error == 0) delete_object(&to_window(mw));
  return error;
}

}  // namespace rocemu::provider
