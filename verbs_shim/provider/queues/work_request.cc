// The functions of ibv_qp_ex: send requests built piece by piece between wr_start and wr_complete
// (ibv_wr_post(3)). Requests are written into the ring as they are built; an error in one of them
// takes all of them back.
#include <errno.h>
#include <string.h>

#include "verbs_shim/provider/queues/inline_wqe_data.h"
#include "verbs_shim/provider/queues/queue_pair.h"
#include "verbs_shim/provider/rings/receive_request.h"

namespace rocemu::provider {
namespace {

void fail(QueuePair& queue, int error) {
  if (queue.building.error == 0) queue.building.error = error;
  queue.building.request = nullptr;
}

rocemu_send_wqe* wqe_of(QueuePair& queue) {
  return reinterpret_cast<rocemu_send_wqe*>(queue.building.request);
}

// Begins a request with the wr_id and wr_flags that the program has set; null after an error.
rocemu_send_wqe* begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.building.error != 0) return nullptr;
  queue.building.request = queue.send_ring.claim();
  if (queue.building.request == nullptr) {
    fail(queue, ENOMEM);
    return nullptr;
  }
  rocemu_send_wqe& wqe = *wqe_of(queue);
  wqe = {};
  wqe.wr_id = qp->wr_id;
  wqe.opcode = static_cast<uint8_t>(opcode);
  // The data is inline when it was set so, whatever the flags say.
  wqe.flags = static_cast<uint8_t>(qp->wr_flags &
                                   (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  if (queue.signal_all) wqe.flags |= ROCEMU_SEND_SIGNALED;
  wqe.post_stamp = queue.send_ring.post_stamp();
  return &wqe;
}

rocemu_send_wqe* begin_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey,
                              uint64_t address) {
  rocemu_send_wqe* wqe = begin(qp, opcode);
  if (wqe != nullptr) {
    wqe->rkey = rkey;
    wqe->remote_address = address;
  }
  return wqe;
}

void wr_send(ibv_qp_ex* qp) {
  if (begin(qp, IBV_WR_SEND) == nullptr) return;
  QueuePair& queue = to_queue_pair(qp);
  const bool wants_checksum = (qp->wr_flags & IBV_SEND_IP_CSUM) != 0;
  if (wants_checksum && queue.verbs.qp.qp_type == IBV_QPT_RAW_PACKET) fail(queue, EINVAL);
}

void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  if (rocemu_send_wqe* wqe = begin(qp, IBV_WR_SEND_WITH_IMM)) wqe->imm_or_rkey = immediate;
}

void wr_send_inv(ibv_qp_ex* qp, uint32_t rkey) {
  if (rocemu_send_wqe* wqe = begin(qp, IBV_WR_SEND_WITH_INV)) wqe->imm_or_rkey = rkey;
}

void wr_local_inv(ibv_qp_ex* qp, uint32_t rkey) {
  if (rocemu_send_wqe* wqe = begin(qp, IBV_WR_LOCAL_INV)) wqe->imm_or_rkey = rkey;
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  rocemu_send_wqe* wqe = begin(qp, IBV_WR_BIND_MW);
  if (wqe == nullptr) return;
  QueuePair& queue = to_queue_pair(qp);
  if (!set_binding(queue.verbs.qp, mw, rkey, *info, *wqe)) fail(queue, EINVAL);
}

void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  begin_remote(qp, IBV_WR_RDMA_WRITE, rkey, address);
}

void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, __be32 immediate) {
  rocemu_send_wqe* wqe = begin_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
  if (wqe != nullptr) wqe->imm_or_rkey = immediate;
}

void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  begin_remote(qp, IBV_WR_RDMA_READ, rkey, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  rocemu_send_wqe* wqe = begin_remote(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
  if (wqe == nullptr) return;
  wqe->compare_add = compare;
  wqe->swap = swap;
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t add) {
  rocemu_send_wqe* wqe = begin_remote(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address);
  if (wqe != nullptr) wqe->compare_add = add;
}

// Its data comes with the request: none is set behind.
void wr_atomic_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, const void* data) {
  rocemu_send_wqe* wqe = begin_remote(qp, IBV_WR_ATOMIC_WRITE, rkey, address);
  if (wqe == nullptr) return;
  memcpy(&wqe->compare_add, data, sizeof(wqe->compare_add));
  wqe->flags |= ROCEMU_SEND_INLINE;
  wqe->inline_bytes = sizeof(wqe->compare_add);
}

void wr_send_tso(ibv_qp_ex* qp, void* headers, uint16_t headers_bytes, uint16_t segment_bytes) {
  rocemu_send_wqe* wqe = begin(qp, IBV_WR_TSO);
  if (wqe == nullptr) return;
  QueuePair& queue = to_queue_pair(qp);
  if (!set_segmentation(queue, headers, headers_bytes, segment_bytes, *wqe,
                        queue.building.request)) {
    fail(queue, EINVAL);
  }
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.building.request == nullptr) return;
  wqe_of(queue)->ah = ah->handle;
  wqe_of(queue)->remote_qpn = remote_qpn;
  wqe_of(queue)->remote_qkey = remote_qkey;
}

void wr_set_xrc_srqn(ibv_qp_ex* qp, uint32_t remote_srqn) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.building.request != nullptr) wqe_of(queue)->remote_qpn = remote_srqn;
}

void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* sges) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.building.request == nullptr) return;
  if (count > queue.cap.max_send_sge) return fail(queue, EINVAL);
  wqe_of(queue)->num_sge = static_cast<uint16_t>(count);
  copy_sges(sges, wqe_of(queue)->num_sge, queue.building.request + sizeof(rocemu_send_wqe));
  add_inline_data(queue.send_ring, *wqe_of(queue), sges);
}

void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge sge = {address, length, lkey};
  wr_set_sge_list(qp, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.building.request == nullptr) return;
  if (wqe_of(queue)->opcode == IBV_WR_TSO) return fail(queue, EINVAL);
  uint8_t* payload = queue.building.request + sizeof(rocemu_send_wqe);
  const uint32_t room = queue.cap.max_inline_data;
  uint32_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i].length > room - bytes) return fail(queue, EINVAL);
    if (buffers[i].length > 0) memcpy(payload + bytes, buffers[i].addr, buffers[i].length);
    bytes += static_cast<uint32_t>(buffers[i].length);
  }
  wqe_of(queue)->flags |= ROCEMU_SEND_INLINE;
  wqe_of(queue)->inline_bytes = bytes;
}

void wr_set_inline_data(ibv_qp_ex* qp, void* address, size_t length) {
  const ibv_data_buf buffer = {address, length};
  wr_set_inline_data_list(qp, 1, &buffer);
}

void wr_start(ibv_qp_ex* qp) {
  QueuePair& queue = to_queue_pair(qp);
  queue.send_lock.lock();
  queue.building.request = nullptr;
  queue.building.error = check_can_send(queue);
}

int wr_complete(ibv_qp_ex* qp) {
  QueuePair& queue = to_queue_pair(qp);
  const int error = queue.building.error;
  if (error == 0) {
    submit_sends(queue);
  } else {
    queue.send_ring.unclaim_all();
  }
  queue.building.request = nullptr;
  queue.send_lock.unlock();
  return error;
}

void wr_abort(ibv_qp_ex* qp) {
  QueuePair& queue = to_queue_pair(qp);
  queue.send_ring.unclaim_all();
  queue.building.request = nullptr;
  queue.send_lock.unlock();
}

}  // namespace

// IB_UVERBS_DEVICE_ATOMIC_WRITE and _FLUSH_GLOBAL of <rdma/ib_user_verbs.h>, which libibverbs hands
// on as they are.
constexpr uint64_t kAtomicWriteCap = uint64_t{1} << 40;
constexpr uint64_t kFlushGlobalCap = uint64_t{1} << 38;

// It has no payload.
void wr_flush(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, size_t bytes, uint8_t placement,
              uint8_t selectivity) {
  constexpr uint8_t kPlacements = 1 | 2;          // IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT
  constexpr uint8_t kLastSelectivity = 1;         // IBV_FLUSH_MR
  constexpr size_t kMostBytes = size_t{1} << 31;  // as of any message (IBTA vol 1, 9.7.2)
  rocemu_send_wqe* wqe = begin_remote(qp, kFlushOpcode, rkey, address);
  if (wqe == nullptr) return;
  if (placement == 0 || (placement & ~kPlacements) != 0 || selectivity > kLastSelectivity ||
      bytes > kMostBytes) {
    fail(to_queue_pair(qp), EINVAL);
    return;
  }
  wqe->compare_add = bytes;
  wqe->swap = placement | uint64_t{selectivity} << 8;
}

void set_flush_function(ibv_qp_ex& qp, FlushFunction* function) {
  memcpy(place_of_flush(to_queue_pair(&qp)), &function, sizeof(function));
}

uint64_t offered_send_ops(QueuePair& queue, const rocemu_device_attr& limits) {
  const ibv_qp_type type = queue.verbs.qp.qp_type;
  if (type == IBV_QPT_XRC_RECV) return 0;
  if (type == IBV_QPT_RAW_PACKET) return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
  uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  if (type == IBV_QPT_UD) return ops;
  ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
    ops |= IBV_QP_EX_WITH_RDMA_READ;
    if ((limits.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0) {
      ops |= IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV;
    }
    const auto has = [&](uint64_t cap) {
      return type == IBV_QPT_RC && (limits.device_cap_flags & cap) != 0;
    };
    if (has(kAtomicWriteCap)) ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
    if (has(kFlushGlobalCap) && place_of_flush(queue) != nullptr) ops |= kWithFlush;
    if (limits.max_mw > 0) ops |= IBV_QP_EX_WITH_BIND_MW;
    if (limits.atomic_cap != IBV_ATOMIC_NONE) {
      ops |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
  }
  return ops;
}

void set_work_request_functions(ibv_qp_ex& qp, uint64_t ops) {
  const auto wanted = [ops](uint64_t op, auto function) {
    return (ops & op) != 0 ? function : nullptr;
  };
  qp.wr_send = wanted(IBV_QP_EX_WITH_SEND, &wr_send);
  qp.wr_send_imm = wanted(IBV_QP_EX_WITH_SEND_WITH_IMM, &wr_send_imm);
  qp.wr_send_inv = wanted(IBV_QP_EX_WITH_SEND_WITH_INV, &wr_send_inv);
  qp.wr_local_inv = wanted(IBV_QP_EX_WITH_LOCAL_INV, &wr_local_inv);
  qp.wr_bind_mw = wanted(IBV_QP_EX_WITH_BIND_MW, &wr_bind_mw);
  qp.wr_rdma_write = wanted(IBV_QP_EX_WITH_RDMA_WRITE, &wr_rdma_write);
  qp.wr_rdma_write_imm = wanted(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, &wr_rdma_write_imm);
  qp.wr_rdma_read = wanted(IBV_QP_EX_WITH_RDMA_READ, &wr_rdma_read);
  qp.wr_atomic_cmp_swp = wanted(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, &wr_atomic_cmp_swp);
  qp.wr_atomic_fetch_add = wanted(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, &wr_atomic_fetch_add);
  qp.wr_send_tso = wanted(IBV_QP_EX_WITH_TSO, &wr_send_tso);
  // Older libraries have something else in their place.
  if ((ops & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0) qp.wr_atomic_write = wr_atomic_write;
  if ((ops & kWithFlush) != 0) set_flush_function(qp, wr_flush);
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_xrc_srqn = wr_set_xrc_srqn;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
}

}  // namespace rocemu::provider
