// The functions of ibv_qp_ex. Each does as the unchecked one, and adds to the list of requests that
// the checker is shown at wr_complete.
#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/checked/extended.h"
#include "verbs_shim/provider/checked/staging.h"
#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider::checked {
namespace {

ibv_qp_ex plain;  // the unchecked ones

StagedList& staged(ibv_qp_ex* qp) { return to_queue_pair(qp).checked->staged(); }

ibv_send_wr* stage(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  ibv_send_wr* request = staged(qp).add();
  if (request == nullptr) return nullptr;
  request->wr_id = qp->wr_id;
  request->opcode = opcode;
  request->send_flags = qp->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  return request;
}

void stage_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr* request = stage(qp, opcode);
  if (request == nullptr) return;
  request->wr.rdma.remote_addr = address;
  request->wr.rdma.rkey = rkey;
}

void stage_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr* request = stage(qp, opcode);
  if (request == nullptr) return;
  request->wr.atomic.remote_addr = address;
  request->wr.atomic.rkey = rkey;
}

void wr_send(ibv_qp_ex* qp) {
  plain.wr_send(qp);
  stage(qp, IBV_WR_SEND);
}

void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  plain.wr_send_imm(qp, immediate);
  stage(qp, IBV_WR_SEND_WITH_IMM);
}

void wr_send_inv(ibv_qp_ex* qp, uint32_t rkey) {
  plain.wr_send_inv(qp, rkey);
  stage(qp, IBV_WR_SEND_WITH_INV);
}

void wr_local_inv(ibv_qp_ex* qp, uint32_t rkey) {
  plain.wr_local_inv(qp, rkey);
  stage(qp, IBV_WR_LOCAL_INV);
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  plain.wr_bind_mw(qp, mw, rkey, info);
  stage(qp, IBV_WR_BIND_MW);
}

void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  plain.wr_rdma_write(qp, rkey, address);
  stage_rdma(qp, IBV_WR_RDMA_WRITE, rkey, address);
}

void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, __be32 immediate) {
  plain.wr_rdma_write_imm(qp, rkey, address, immediate);
  stage_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
}

void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t address) {
  plain.wr_rdma_read(qp, rkey, address);
  stage_rdma(qp, IBV_WR_RDMA_READ, rkey, address);
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
  plain.wr_atomic_cmp_swp(qp, rkey, address, compare, swap);
  stage_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t add) {
  plain.wr_atomic_fetch_add(qp, rkey, address, add);
  stage_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address);
}

void wr_atomic_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, const void* data) {
  plain.wr_atomic_write(qp, rkey, address, data);
  stage_rdma(qp, IBV_WR_ATOMIC_WRITE, rkey, address);
  if (ibv_send_wr* request = staged(qp).last()) request->send_flags |= IBV_SEND_INLINE;
}

void wr_flush(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, size_t bytes, uint8_t placement,
              uint8_t selectivity) {
  provider::wr_flush(qp, rkey, address, bytes, placement, selectivity);
  stage_rdma(qp, kFlushOpcode, rkey, address);
}

void wr_send_tso(ibv_qp_ex* qp, void* headers, uint16_t headers_bytes, uint16_t segment_bytes) {
  plain.wr_send_tso(qp, headers, headers_bytes, segment_bytes);
  ibv_send_wr* request = stage(qp, IBV_WR_TSO);
  if (request == nullptr) return;
  request->tso.hdr = headers;
  request->tso.hdr_sz = headers_bytes;
  request->tso.mss = segment_bytes;
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  plain.wr_set_ud_addr(qp, ah, remote_qpn, remote_qkey);
  ibv_send_wr* request = staged(qp).last();
  if (request == nullptr) return;
  request->wr.ud.ah = ah;
  request->wr.ud.remote_qpn = remote_qpn;
  request->wr.ud.remote_qkey = remote_qkey;
}

void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* sges) {
  plain.wr_set_sge_list(qp, count, sges);
  if (count <= to_queue_pair(qp).cap.max_send_sge) staged(qp).add_sges(sges, count);
}

void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  plain.wr_set_sge(qp, lkey, address, length);
  const ibv_sge sge = {address, length, lkey};
  staged(qp).add_sges(&sge, 1);
}

void wr_set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  plain.wr_set_inline_data_list(qp, count, buffers);
  if (ibv_send_wr* request = staged(qp).last()) request->send_flags |= IBV_SEND_INLINE;
}

void wr_set_inline_data(ibv_qp_ex* qp, void* address, size_t length) {
  plain.wr_set_inline_data(qp, address, length);
  if (ibv_send_wr* request = staged(qp).last()) request->send_flags |= IBV_SEND_INLINE;
}

void wr_start(ibv_qp_ex* qp) {
  plain.wr_start(qp);
  QueuePairRecord& record = *to_queue_pair(qp).checked;
  record.current ^= 1;
  record.staged().clear();
}

// The list is known before the NIC hears of it. The queue's lock is given up meanwhile; the
// checker's own is kept until the list is done with.
int wr_complete(ibv_qp_ex* qp) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_wr_complete");
  void* shadow = to_queue_pair(qp).checked->shadow;
  const ibv_send_wr* list = staged(qp).link();
  hooks->sends_posting(&at, shadow, list);
  const int error = plain.wr_complete(qp);
  hooks->sends_posted(&at, shadow, list, error, list);
  return error;
}

}  // namespace

// An ibv_qp_ex of this header may have no room for wr_flush.
void remember_work_request_functions() { set_work_request_functions(plain, ~kWithFlush); }

void check_work_request_functions(ibv_qp_ex& qp, uint64_t ops) {
  const auto replace = [](auto& function, auto checked) {
    if (function != nullptr) function = checked;
  };
  replace(qp.wr_send, wr_send);
  replace(qp.wr_send_imm, wr_send_imm);
  replace(qp.wr_send_inv, wr_send_inv);
  replace(qp.wr_local_inv, wr_local_inv);
  replace(qp.wr_bind_mw, wr_bind_mw);
  replace(qp.wr_rdma_write, wr_rdma_write);
  replace(qp.wr_rdma_write_imm, wr_rdma_write_imm);
  replace(qp.wr_rdma_read, wr_rdma_read);
  replace(qp.wr_atomic_cmp_swp, wr_atomic_cmp_swp);
  replace(qp.wr_atomic_fetch_add, wr_atomic_fetch_add);
  replace(qp.wr_send_tso, wr_send_tso);
  // Older libraries have something else in their place.
  if ((ops & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0) qp.wr_atomic_write = wr_atomic_write;
  if ((ops & kWithFlush) != 0) set_flush_function(qp, wr_flush);
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
}

}  // namespace rocemu::provider::checked
