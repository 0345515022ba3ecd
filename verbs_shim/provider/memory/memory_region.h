// The common part of registrations of every kind: the NIC makes the region and gives it its keys.
#pragma once

#include <errno.h>

#include <cstdint>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

// Null with errno when the NIC refuses. Handle, length and whatever else a kind has are the
// caller's to fill in.
template <typename Request, typename Reply>
VerbsMr* make_region(ibv_pd* pd, uint32_t op, Request& request, Reply& reply, SentFds sent = {}) {
  auto* region = new_object<VerbsMr>();
  if (region == nullptr) return nullptr;
  if (const int error = to_context(pd->context).call(op, request, reply, nullptr, sent);
      error != 0) {
    delete_object(region);
    errno = error;
    return nullptr;
  }
  region->mr.context = pd->context;
  region->mr.pd = pd;
  region->mr.lkey = reply.lkey;
  region->mr.rkey = reply.rkey;
  return region;
}

}  // namespace rocemu::provider
