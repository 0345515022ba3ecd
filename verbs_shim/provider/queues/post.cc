// ibv_post_send and ibv_post_recv.
#include <errno.h>
#include <string.h>

#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/asked_posts.h"
#include "verbs_shim/provider/queues/inline_wqe_data.h"
#include "verbs_shim/provider/queues/memory_window.h"
#include "verbs_shim/provider/queues/queue_pair.h"
#include "verbs_shim/provider/rings/receive_request.h"

namespace rocemu::provider {
namespace {

constexpr unsigned kFlagsOfPrograms =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// Sets where the request reaches in the peer, and what it takes there besides data. False when the
// opcode isn't one a work queue entry can express.
bool set_operation(const ibv_qp& qp, const ibv_send_wr& from, rocemu_send_wqe& to) {
  switch (from.opcode) {
    case IBV_WR_SEND:
      return true;
    case IBV_WR_SEND_WITH_IMM:
      to.imm_or_rkey = from.imm_data;
      return true;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      to.imm_or_rkey = from.invalidate_rkey;
      return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      to.imm_or_rkey = from.imm_data;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
      to.remote_address = from.wr.rdma.remote_addr;
      to.rkey = from.wr.rdma.rkey;
      return true;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      to.remote_address = from.wr.atomic.remote_addr;
      to.rkey = from.wr.atomic.rkey;
      to.compare_add = from.wr.atomic.compare_add;
      to.swap = from.wr.atomic.swap;
      return true;
    case IBV_WR_BIND_MW:
      return set_binding(qp, from.bind_mw.mw, from.bind_mw.rkey, from.bind_mw.bind_info, to);
    case IBV_WR_TSO:
      return qp.qp_type == IBV_QPT_RAW_PACKET;
    default:
      return false;
  }
}

// Sets what the QP's service needs besides. UD requests have their address where others name
// memory.
bool set_service(const ibv_qp& qp, const ibv_send_wr& from, rocemu_send_wqe& to) {
  switch (qp.qp_type) {
    case IBV_QPT_UD:
      if (from.opcode != IBV_WR_SEND && from.opcode != IBV_WR_SEND_WITH_IMM) return false;
      if (from.wr.ud.ah == nullptr) return false;
      to.ah = from.wr.ud.ah->handle;
      to.remote_qpn = from.wr.ud.remote_qpn;
      to.remote_qkey = from.wr.ud.remote_qkey;
      return true;
    case IBV_QPT_RAW_PACKET:
      // TSO makes both checksums, whatever the flag says.
      return from.opcode == IBV_WR_TSO ||
             (from.opcode == IBV_WR_SEND && (from.send_flags & IBV_SEND_IP_CSUM) == 0);
    case IBV_QPT_XRC_SEND:
      to.remote_qpn = from.qp_type.xrc.remote_srqn;
      return true;
    default:
      return true;
  }
}

bool takes_inline(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_ATOMIC_WRITE;
}

// Copies what the scatter list names behind the WQE; false when it is longer than was granted.
bool copy_inline(const ibv_send_wr& from, uint32_t room, rocemu_send_wqe& wqe, uint8_t* payload) {
  uint32_t bytes = 0;
  for (int i = 0; i < from.num_sge; ++i) {
    const ibv_sge& sge = from.sg_list[i];
    if (sge.length > room - bytes) return false;
    if (sge.length > 0) {
      memcpy(payload + bytes, reinterpret_cast<const void*>(sge.addr), sge.length);
    }
    bytes += sge.length;
  }
  wqe.inline_bytes = bytes;
  return true;
}

int put_send(QueuePair& queue, const ibv_send_wr& request) {
  if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > queue.cap.max_send_sge) {
    return EINVAL;
  }
  rocemu_send_wqe wqe = {};
  const ibv_qp& qp = queue.verbs.qp;
  if (!set_operation(qp, request, wqe) || !set_service(qp, request, wqe)) return EINVAL;
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (is_inline && !takes_inline(request.opcode)) return EINVAL;
  uint8_t* slot = queue.send_ring.claim();
  if (slot == nullptr) return ENOMEM;
  wqe.wr_id = request.wr_id;
  wqe.opcode = static_cast<uint8_t>(request.opcode);
  wqe.flags = static_cast<uint8_t>(request.send_flags & kFlagsOfPrograms);
  if (queue.signal_all) wqe.flags |= ROCEMU_SEND_SIGNALED;
  wqe.post_stamp = queue.send_ring.post_stamp();
  uint8_t* payload = slot + sizeof(wqe);
  if (request.opcode == IBV_WR_TSO &&
      !set_segmentation(queue, request.tso.hdr, request.tso.hdr_sz, request.tso.mss, wqe, slot)) {
    queue.send_ring.unclaim_last();
    return EINVAL;
  }
  if (is_inline) {
    const bool is_atomic_write = request.opcode == IBV_WR_ATOMIC_WRITE;
    auto* const into = is_atomic_write ? reinterpret_cast<uint8_t*>(&wqe.compare_add) : payload;
    const uint32_t room = is_atomic_write ? sizeof(wqe.compare_add) : queue.cap.max_inline_data;
    if (!copy_inline(request, room, wqe, into)) {
      queue.send_ring.unclaim_last();
      return EINVAL;
    }
  } else {
    wqe.num_sge = static_cast<uint16_t>(request.num_sge);
    copy_sges(request.sg_list, wqe.num_sge, payload);
    add_inline_data(queue.send_ring, wqe, request.sg_list);
  }
  memcpy(slot, &wqe, sizeof(wqe));
  return 0;
}

// Objects of another device have keys that are another object's on this one.
bool set_binding(const ibv_qp& qp, uint32_t rkey, const ibv_mw_bind_info& info,
                 rocemu_send_wqe& wqe) {
  if (info.mr == nullptr ? info.length > 0 : info.mr->context != qp.context) return false;
  wqe.imm_or_rkey = info.mr == nullptr ? 0 : info.mr->lkey;
  wqe.remote_address = info.addr;
  wqe.rkey = rkey;
  wqe.compare_add = info.length;
  wqe.swap = info.mw_access_flags;
  return true;
}

}  // namespace

bool set_binding(const ibv_qp& qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info& info,
                 rocemu_send_wqe& wqe) {
  return mw != nullptr && mw->type == IBV_MW_TYPE_2 && mw->context == qp.context &&
         set_binding(qp, window_key(to_window(mw), rkey), info, wqe);
}

bool set_segmentation(const QueuePair& queue, const void* headers, uint16_t headers_bytes,
                      uint16_t segment_bytes, rocemu_send_wqe& wqe, uint8_t* slot) {
  constexpr uint16_t kEthernetBytes = 14;
  if (headers_bytes < kEthernetBytes || headers_bytes > queue.max_tso_header) return false;
  const uint32_t offset = sizeof(wqe) + queue.cap.max_send_sge * sizeof(rocemu_sge);
  memcpy(slot + offset, headers, headers_bytes);
  wqe.inline_bytes = headers_bytes;
  wqe.rkey = segment_bytes;
  return true;
}

namespace {

// As the NIC has it: what ibv_qp says may be put back by an ibv_query_qp() in another thread that
// was asked before the last ibv_modify_qp(). A QP over a table of receive queues has no header.
uint32_t state_of(const QueuePair& queue) {
  if (queue.header == nullptr) return queue.verbs.qp.state;
  return load_relaxed(&queue.header->qp_state);
}

}  // namespace

int check_can_send(const QueuePair& queue) {
  if (queue.verbs.qp.qp_type == IBV_QPT_XRC_RECV) return EINVAL;
  switch (state_of(queue)) {
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      return EINVAL;
    default:
      return 0;
  }
}

void submit_sends(QueuePair& queue) {
  if (!queue.send_ring.has_claimed()) return;
  queue.send_ring.publish();
  const uint32_t state = to_context(queue.verbs.qp.context).state.doorbells.ring(queue.doorbell);
  if (state != 0) [[unlikely]]
    heed(queue, state);
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  QueuePair& queue = to_queue_pair(qp);
  Lock lock(queue.send_lock);
  return post_send_locked(queue, request, bad);
}

int post_send_locked(QueuePair& queue, ibv_send_wr* request, ibv_send_wr** bad) {
  int error = check_can_send(queue);
  while (error == 0 && request != nullptr) {
    error = put_send(queue, *request);
    if (error == 0) request = request->next;
  }
  if (error != 0 && bad != nullptr) *bad = request;
  submit_sends(queue);
  return error;
}

// Binds windows of type 1, whose keys the device chooses.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  QueuePair& queue = to_queue_pair(qp);
  Lock lock(queue.send_lock);
  return bind_mw_locked(queue, mw, bind);
}

int bind_mw_locked(QueuePair& queue, ibv_mw* mw, ibv_mw_bind* bind) {
  const ibv_qp* qp = &queue.verbs.qp;
  if (const int error = check_can_send(queue); error != 0) return error;
  rocemu_send_wqe wqe = {};
  MemoryWindow& window = to_window(mw);
  const uint32_t rkey = ibv_inc_rkey(window.key);
  if (mw->context != qp->context || !set_binding(*qp, rkey, bind->bind_info, wqe)) return EINVAL;
  uint8_t* slot = queue.send_ring.claim();
  if (slot == nullptr) return ENOMEM;
  wqe.wr_id = bind->wr_id;
  wqe.opcode = IBV_WR_BIND_MW;
  wqe.flags = static_cast<uint8_t>(bind->send_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED));
  if (queue.signal_all) wqe.flags |= ROCEMU_SEND_SIGNALED;
  wqe.post_stamp = queue.send_ring.post_stamp();
  memcpy(slot, &wqe, sizeof(wqe));
  submit_sends(queue);
  mw->rkey = window.key = rkey;
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  QueuePair& queue = to_queue_pair(qp);
  Lock lock(queue.recv_lock);
  return post_recv_locked(queue, request, bad);
}

int post_recv_locked(QueuePair& queue, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const ibv_qp* qp = &queue.verbs.qp;
  const bool takes_receives =
      qp->srq == nullptr && qp->qp_type != IBV_QPT_XRC_SEND && qp->qp_type != IBV_QPT_XRC_RECV;
  int error = !takes_receives || state_of(queue) == IBV_QPS_RESET ? EINVAL : 0;
  while (error == 0 && request != nullptr) {
    error = put_receive(queue.recv_ring, queue.cap.max_recv_sge, *request);
    if (error == 0) request = request->next;
  }
  if (error != 0 && bad != nullptr) *bad = request;
  if (!queue.recv_ring.has_claimed()) return error;
  queue.recv_ring.publish();
  full_fence();
  if (load_relaxed(&queue.header->qp_state) == IBV_QPS_ERR) {
    const uint32_t state = to_context(qp->context).state.doorbells.ring(queue.doorbell);
    if (state != 0) heed(queue, state);
  }
  return error;
}

}  // namespace rocemu::provider
