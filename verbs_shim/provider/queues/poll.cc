// Taking completions off a CQ: ibv_poll_cq, and the functions of ibv_cq_ex.
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "verbs_shim/provider/common/clocks.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/queues/inline_cqe_data.h"

namespace rocemu::provider {
namespace {

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

// After a poll that found nothing, under the CQ's lock: tells the NIC which core it could have to
// itself. Returns the core's number and 1; 0 where the program wants to keep it.
uint32_t offer_core(CompletionQueue& queue) {
  if (!to_context(queue.verbs.cq.context).state.yield_when_idle) return 0;
  const auto core = static_cast<uint32_t>(sched_getcpu()) + 1;
  queue.ring.show_poller_core(core);
  return core;
}

void yield(PollPacer& pacer, const rocemu_engine_page& engine, bool engine_here) {
  if (!pacer.times_yields(engine_here)) {
    sched_yield();
    return;
  }
  const bool engine_waits = engine_here && load_relaxed(&engine.sleeping) == 0;
  const uint64_t before = now_ns(CLOCK_MONOTONIC);
  sched_yield();
  if (!pacer.on_yield(engine_waits, now_ns(CLOCK_MONOTONIC) - before)) return;
  const timespec shortest = {0, 1};
  nanosleep(&shortest, nullptr);
}

// While cores are short for what the NIC has to move, completions that are taken late cost less
// than a core that is kept for polling. The system adds its timer slack, mostly 50 us.
void sleep_for_a_moment() {
  const timespec moment = {0, 50'000};
  nanosleep(&moment, nullptr);
}

// The rest of it, the lock given up. EIO when the NIC is gone and nothing more will come, else 0.
int idle(CompletionQueue& queue, uint32_t core) {
  DeviceContext& context = to_context(queue.verbs.cq.context);
  const DeviceState& state = context.state;
  const rocemu_engine_page& engine = *state.doorbells.engine;
  const bool engine_here = core != 0 && load_relaxed(&engine.core) == core;
  const PollPacer::Advice advice = queue.pacer.on_empty(engine_here);
  const bool waits = advice != PollPacer::Advice::kGoOn && state.yield_when_idle;
  const bool crowded = waits && load_relaxed(&engine.crowded) != 0;
  if (crowded) {
    sleep_for_a_moment();
  } else if (waits) {
    yield(queue.pacer, engine, engine_here);
  }
  // A NIC that is gone may have been crowded to the end.
  if (crowded || advice == PollPacer::Advice::kYieldAndLook) context.look_for_nic();
  return state.connection.lost() ? EIO : 0;
}

void show(CompletionQueue& queue, const rocemu_cqe* entry) {
  queue.current = entry;
  if (entry == nullptr) return;
  deliver(*entry);
  queue.verbs.cq_ex.wr_id = entry->wr_id;
  queue.verbs.cq_ex.status = static_cast<ibv_wc_status>(entry->status);
}

// ibv_start_poll: the lock stays held after success, until end_poll.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  CompletionQueue& queue = to_queue(cq);
  queue.lock.lock();
  show(queue, queue.ring.take());
  if (queue.current != nullptr) {
    queue.pacer.on_completion();
    return 0;
  }
  queue.ring.give_back();
  const uint32_t core = offer_core(queue);
  queue.lock.unlock();
  const int error = idle(queue, core);
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
// Of what was matched; what has come of it later has no header of its own.
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

}  // namespace

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  CompletionQueue& queue = to_queue(cq);
  int taken = 0;
  uint32_t core = 0;
  {
    Lock lock(queue.lock);
    while (taken < entries) {
      const rocemu_cqe* entry = queue.ring.take();
      if (entry == nullptr) break;
      deliver(*entry);
      translate(*entry, completions[taken++]);
    }
    queue.ring.give_back();
    if (taken == 0) core = offer_core(queue);
  }
  if (taken > 0) {
    queue.pacer.on_completion();
    return taken;
  }
  return entries > 0 ? -idle(queue, core) : 0;
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
