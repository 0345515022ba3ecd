// A receive request into the ring of a QP or an SRQ.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/rings/work_ring.h"

namespace rocemu::provider {

static_assert(sizeof(ibv_sge) == sizeof(rocemu_sge));
static_assert(offsetof(ibv_sge, length) == offsetof(rocemu_sge, length_bytes));
static_assert(offsetof(ibv_sge, lkey) == offsetof(rocemu_sge, lkey));

inline void copy_sges(const ibv_sge* from, uint32_t count, uint8_t* to) {
  if (count > 0) memcpy(to, from, count * sizeof(*from));
}

// 0; EINVAL for too many elements, ENOMEM when the ring is full.
inline int put_receive(WorkRing& ring, uint32_t max_sge, const ibv_recv_wr& request) {
  if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > max_sge) return EINVAL;
  uint8_t* slot = ring.claim();
  if (slot == nullptr) return ENOMEM;
  rocemu_recv_wqe wqe = {};
  wqe.wr_id = request.wr_id;
  wqe.num_sge = static_cast<uint32_t>(request.num_sge);
  wqe.post_stamp = ring.post_stamp();
  memcpy(slot, &wqe, sizeof(wqe));
  copy_sges(request.sg_list, wqe.num_sge, slot + sizeof(wqe));
  return 0;
}

}  // namespace rocemu::provider
