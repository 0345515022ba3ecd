// ibv_poll_cq, ibv_req_notify_cq, and the functions of ibv_cq_ex.
#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/checked/extended.h"
#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/queues/empty_poll.h"

namespace rocemu::provider::checked {
namespace {

ibv_cq_ex plain;  // the unchecked ones

// True between start_poll and end_poll once a failed completion was met.
thread_local bool saw_failure = false;

ibv_wc current_completion(const CompletionQueue& queue) {
  ibv_wc completion = {};
  translate(*queue.current, completion);
  return completion;
}

// The copy that the hook writes over is nobody's.
void tell_taken(rocemu_check_at at, CompletionQueue& queue) {
  ibv_wc completion = current_completion(queue);
  saw_failure = saw_failure || completion.status != IBV_WC_SUCCESS;
  hooks->polled(at, queue.shadow, &completion, 1);
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_start_poll");
  CompletionQueue& queue = to_queue(cq);
  const int error = plain.start_poll(cq, attr);
  if (error == 0) {
    saw_failure = false;
    tell_taken(&at, queue);
  } else {
    hooks->polled(&at, queue.shadow, nullptr, 0);
  }
  return error;
}

int next_poll(ibv_cq_ex* cq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_next_poll");
  const int error = plain.next_poll(cq);
  if (error == 0) tell_taken(&at, to_queue(cq));
  return error;
}

void end_poll(ibv_cq_ex* cq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_end_poll");
  plain.end_poll(cq);
  if (!saw_failure) return;
  saw_failure = false;
  hooks->failures_polled(&at, to_queue(cq).shadow);
}

// True when the field has no meaning and is to be garbage.
bool is_meaningless(rocemu_check_at at, ibv_cq_ex* cq, const char* field) {
  if (cq->status == IBV_WC_SUCCESS) return false;
  CompletionQueue& queue = to_queue(cq);
  const ibv_wc completion = current_completion(queue);
  return hooks->meaningless_read(at, queue.shadow, field, &completion) != 0;
}

#define ROCEMU_CHECKED_FIELD(type, field, garbage)                           \
  type read_##field(ibv_cq_ex* cq) {                                         \
    const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_wc_read_" #field); \
    if (is_meaningless(&at, cq, #field)) return static_cast<type>(garbage);  \
    return plain.read_##field(cq);                                           \
  }
ROCEMU_CHECKED_FIELD(ibv_wc_opcode, opcode, ROCEMU_GARBAGE_OPCODE)
ROCEMU_CHECKED_FIELD(unsigned, wc_flags, ROCEMU_GARBAGE_WC_FLAGS)
ROCEMU_CHECKED_FIELD(uint32_t, byte_len, ROCEMU_GARBAGE_BYTE_LEN)
ROCEMU_CHECKED_FIELD(__be32, imm_data, ROCEMU_GARBAGE_IMM_DATA)
ROCEMU_CHECKED_FIELD(uint32_t, src_qp, ROCEMU_GARBAGE_SRC_QP)
ROCEMU_CHECKED_FIELD(uint32_t, slid, ROCEMU_GARBAGE_SLID)
ROCEMU_CHECKED_FIELD(uint8_t, sl, ROCEMU_GARBAGE_SL)
ROCEMU_CHECKED_FIELD(uint8_t, dlid_path_bits, ROCEMU_GARBAGE_DLID_PATH_BITS)
#undef ROCEMU_CHECKED_FIELD

}  // namespace

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_poll_cq");
  if (entries <= 0) return 0;
  CompletionQueue& queue = to_queue(cq);
  int taken = 0;
  bool failed = false;
  if (!queue.ring.looks_empty()) {
    Lock lock(queue.lock);
    taken = take_locked(queue, entries, completions);
    for (int i = 0; i < taken; ++i) failed = failed || completions[i].status != IBV_WC_SUCCESS;
    if (taken > 0) hooks->polled(&at, queue.shadow, completions, taken);
  }
  if (taken == 0) {
    hooks->polled(&at, queue.shadow, nullptr, 0);
    return -wait_after_empty_poll(queue);
  }
  if (failed) hooks->failures_polled(&at, queue.shadow);
  poll_pacer.on_completion();
  return taken;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_req_notify_cq");
  CompletionQueue& queue = to_queue(cq);
  const int had_completions = queue.ring.looks_empty() ? 0 : 1;
  const int error = provider::req_notify_cq(cq, solicited_only);
  hooks->armed(&at, queue.shadow, solicited_only, had_completions);
  return error;
}

void remember_poll_functions() { set_poll_functions(plain, kOfferedWcFlags); }

void check_poll_functions(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_wc_flags = read_wc_flags;
  if (cq.read_byte_len != nullptr) cq.read_byte_len = read_byte_len;
  if (cq.read_imm_data != nullptr) cq.read_imm_data = read_imm_data;
  if (cq.read_src_qp != nullptr) cq.read_src_qp = read_src_qp;
  if (cq.read_slid != nullptr) cq.read_slid = read_slid;
  if (cq.read_sl != nullptr) cq.read_sl = read_sl;
  if (cq.read_dlid_path_bits != nullptr) cq.read_dlid_path_bits = read_dlid_path_bits;
}

}  // namespace rocemu::provider::checked
