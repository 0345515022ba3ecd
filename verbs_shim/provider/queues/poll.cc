// Taking completions off a CQ: ibv_poll_cq, and the functions of ibv_cq_ex.
#include <errno.h>
#include <stdint.h>

#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/queues/empty_poll.h"
#include "verbs_shim/provider/queues/inline_cqe_data.h"

namespace rocemu::provider {

void translate(const rocemu_cqe& from, ibv_wc& to) {
  to.wr_id = from.wr_id;
  to.status = static_cast<ibv_wc_status>(from.status);
  to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to.vendor_err = 0;
  to.byte_len = from.byte_length;
  to.imm_data = from.imm_or_rkey;
  to.qp_num = from.qp_num;
  to.src_qp = from.src_qp;
  to.wc_flags = from.wc_flags;
  to.pkey_index = 0;
  to.slid = 0;
  to.sl = from.sl;
  to.dlid_path_bits = 0;
}

namespace {

void show(CompletionQueue& queue, const rocemu_cqe* entry) {
  queue.current = entry;
  if (entry == nullptr) return;
  deliver(*entry);
  queue.verbs.cq_ex.wr_id = entry->wr_id;
  queue.verbs.cq_ex.status = static_cast<ibv_wc_status>(entry->status);
}

// False where there is nothing; then the lock is not held.
bool show_first(CompletionQueue& queue) {
  if (queue.ring.looks_empty()) return false;
  queue.lock.lock();
  show(queue, queue.ring.take());
  queue.in_batch = queue.current != nullptr;
  if (queue.in_batch) return true;
  queue.ring.give_back();
  queue.lock.unlock();
  return false;
}

// ibv_start_poll: the lock stays held after success, until end_poll.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  CompletionQueue& queue = to_queue(cq);
  if (show_first(queue)) {
    poll_pacer.on_completion();
    return 0;
  }
  const int error = wait_after_empty_poll(queue);
  return error != 0 ? error : ENOENT;
}

int next_poll(ibv_cq_ex* cq) {
  CompletionQueue& queue = to_queue(cq);
  show(queue, queue.ring.take());
  return queue.current == nullptr ? ENOENT : 0;
}

void end_poll(ibv_cq_ex* cq) {
  CompletionQueue& queue = to_queue(cq);
  queue.current = nullptr;
  queue.in_batch = false;
  queue.ring.give_back();
  queue.lock.unlock();
}

const rocemu_cqe& current(ibv_cq_ex* cq) { return *to_queue(cq).current; }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return static_cast<ibv_wc_opcode>(current(cq).opcode); }
uint32_t read_vendor_err(ibv_cq_ex*) { return 0; }
uint32_t read_byte_len(ibv_cq_ex* cq) { return current(cq).byte_length; }
__be32 read_imm_data(ibv_cq_ex* cq) { return current(cq).imm_or_rkey; }
uint32_t read_qp_num(ibv_cq_ex* cq) { return current(cq).qp_num; }
uint32_t read_src_qp(ibv_cq_ex* cq) { return current(cq).src_qp; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return current(cq).wc_flags; }
uint32_t read_slid(ibv_cq_ex*) { return 0; }
uint8_t read_sl(ibv_cq_ex* cq) { return current(cq).sl; }
uint8_t read_dlid_path_bits(ibv_cq_ex*) { return 0; }
// No VLAN tag is ever stripped.
uint16_t read_cvlan(ibv_cq_ex*) { return 0; }
uint32_t read_flow_tag(ibv_cq_ex* cq) {
  return current(cq).has_flow_tag != 0 ? current(cq).src_qp : 0;
}
// Fills in the tag of a message that has just matched; its later completions have no header.
void read_tm_info(ibv_cq_ex* cq, ibv_wc_tm_info* info) {
  const rocemu_cqe& cqe = current(cq);
  *info = {};
  if ((cqe.wc_flags & IBV_WC_TM_MATCH) == 0) return;
  info->tag = cqe.inline_address;
  info->priv = cqe.src_qp;
}
uint64_t read_wallclock_ns(ibv_cq_ex* cq) {
  return to_context(cq->context).state.wall_clock.of_monotonic(current(cq).timestamp_ns);
}
uint64_t read_completion_ts(ibv_cq_ex* cq) { return current(cq).timestamp_ns; }

int take(CompletionQueue& queue, int entries, ibv_wc* completions) {
  Lock lock(queue.lock);
  return take_locked(queue, entries, completions);
}

}  // namespace

int take_locked(CompletionQueue& queue, int entries, ibv_wc* completions) {
  int taken = 0;
  while (taken < entries) {
    const rocemu_cqe* entry = queue.ring.take();
    if (entry == nullptr) break;
    deliver(*entry);
    translate(*entry, completions[taken++]);
  }
  queue.ring.give_back();
  return taken;
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  if (entries <= 0) return 0;
  CompletionQueue& queue = to_queue(cq);
  const int taken = queue.ring.looks_empty() ? 0 : take(queue, entries, completions);
  if (taken == 0) return -wait_after_empty_poll(queue);
  poll_pacer.on_completion();
  return taken;
}

void set_poll_functions(ibv_cq_ex& cq, uint64_t wc_flags) {
  const auto wanted = [wc_flags](uint64_t flag, auto function) {
    return (wc_flags & flag) != 0 ? function : nullptr;
  };
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_wc_flags = read_wc_flags;
  cq.read_byte_len = wanted(IBV_WC_EX_WITH_BYTE_LEN, &read_byte_len);
  cq.read_imm_data = wanted(IBV_WC_EX_WITH_IMM, &read_imm_data);
  cq.read_qp_num = wanted(IBV_WC_EX_WITH_QP_NUM, &read_qp_num);
  cq.read_src_qp = wanted(IBV_WC_EX_WITH_SRC_QP, &read_src_qp);
  cq.read_slid = wanted(IBV_WC_EX_WITH_SLID, &read_slid);
  cq.read_sl = wanted(IBV_WC_EX_WITH_SL, &read_sl);
  cq.read_dlid_path_bits = wanted(IBV_WC_EX_WITH_DLID_PATH_BITS, &read_dlid_path_bits);
  cq.read_completion_ts = wanted(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, &read_completion_ts);
  cq.read_cvlan = wanted(IBV_WC_EX_WITH_CVLAN, &read_cvlan);
  cq.read_tm_info = wanted(IBV_WC_EX_WITH_TM_INFO, &read_tm_info);
  cq.read_flow_tag = wanted(IBV_WC_EX_WITH_FLOW_TAG, &read_flow_tag);
  cq.read_completion_wallclock_ns =
      wanted(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, &read_wallclock_ns);
}

}  // namespace rocemu::provider
