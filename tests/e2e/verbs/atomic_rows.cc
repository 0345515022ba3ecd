// Atomics and atomic writes: results, and what each wrong one is answered with (IBTA vol 1, 9.4.5,
// 9.7.4.1 and annex A19).
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint64_t kCell = 64;

void need_atomics(Lab& lab) {
  if (lab.b().attr.atomic_cap == IBV_ATOMIC_NONE) throw Skipped("the device has no atomics");
}

void results(Lab& lab) {
  need_atomics(lab);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const uint64_t cell = ends.b.memory.address() + kCell;
  const uint32_t rkey = ends.b.mr->rkey;
  ends.b.set_word(kCell, 5);
  post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, ends.a.sge(0, 8), cell, rkey, 10);
  post_atomic(ends.a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, ends.a.sge(8, 8), cell, rkey, 15, 40);
  post_atomic(ends.a, IBV_WR_ATOMIC_CMP_AND_SWP, 3, ends.a.sge(16, 8), cell, rkey, 15, 99);
  post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, ends.a.sge(24, 8), cell, rkey,
              ~uint64_t{0});  // -1
  for (const uint64_t id : {1, 2, 3, 4}) {
    const ibv_wc wc = expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
    expect_equal(wc.byte_len, 8, "byte_len");
    expect_equal(wc.opcode, id == 1 || id == 4 ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, "opcode");
  }
  expect_equal(ends.a.word(0), 5, "what fetch_add saw");
  expect_equal(ends.a.word(8), 15, "what the swap saw");
  expect_equal(ends.a.word(16), 40, "what the swap that does not match saw");
  expect_equal(ends.a.word(24), 40, "what the last fetch_add saw");
  expect_equal(ends.b.word(kCell), 39, "the cell");
}

void expect_atomic_refused(Lab& lab, Ends& ends, ibv_wc_status status, ibv_event_type event) {
  expect_completion(ends.a.send_cq.get(), 1, {status});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
  expect_state(ends.b.qp.get(), IBV_QPS_ERR);
  expect_qp_event(lab.b(), ends.b.qp.get(), event);
}

void misaligned(Lab& lab) {
  need_atomics(lab);
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    Ends ends = make_ends(lab, IBV_QPT_RC);
    post_atomic(ends.a, opcode, 1, ends.a.sge(0, 8), ends.b.memory.address() + 4, ends.b.mr->rkey,
                1);
    expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
}

// A region whose addresses begin at 0, at an odd place.
MrPtr odd_region(Lab& lab, const End& end) {
  MrPtr mr(ibv_reg_mr(lab.b().pd.get(), end.memory.data() + 4, 64,
                      kAllRights | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED));
  if (mr == nullptr) throw Skipped("the device has no zero-based regions");
  return mr;
}

void misaligned_memory(Lab& lab) {
  need_atomics(lab);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = odd_region(lab, ends.b);
  post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, ends.a.sge(0, 8), 8, mr->rkey, 1);
  expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

void region_without_right(Lab& lab) {
  need_atomics(lab);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const MrPtr mr = register_memory(lab.b().pd.get(), ends.b.memory.data(), 4096, kAllRights);
  must(mr.get(), "ibv_reg_mr");
  post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, ends.a.sge(0, 8), ends.b.memory.address(),
              mr->rkey, 1);
  expect_atomic_refused(lab, ends, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

void qp_without_right(Lab& lab) {
  need_atomics(lab);
  EndOptions options;
  options.rc.access = kAllRights;
  Ends ends = make_ends(lab, options);
  post_atomic(ends.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, ends.a.sge(0, 8), ends.b.memory.address(),
              ends.b.mr->rkey, 1);
  expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

void none_outstanding_allowed(Lab& lab) {
  EndOptions options;
  options.rc.max_rd_atomic = 0;
  Ends ends = make_ends(lab, options);
  SendRequest request(IBV_WR_RDMA_READ, 1, ends.a.sge(0, 8));
  request.remote(ends.b.memory.address(), ends.b.mr->rkey);
  if (post_wrong(ends.a, request)) {
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_LOC_QP_OP_ERR});
    expect_flushed(ends.a.send_cq.get(), {2});
    expect_state(ends.a.qp.get(), IBV_QPS_ERR);
    return;
  }
  ends.a.set_word(0, 77);
  post(ends.a, IBV_WR_RDMA_WRITE, 3, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_equal(ends.b.word(0), 77, "what was written");
}

// ---- atomic writes ----

Ends atomic_writers(Lab& lab, EndOptions options = {}) {
  options.send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_READ;
  return make_ends(lab, options);
}

void write_atomically(Ends& ends, uint64_t address, uint32_t rkey, uint64_t value) {
  ibv_qp_ex* qp = must(ibv_qp_to_qp_ex(ends.a.qp.get()), "ibv_qp_to_qp_ex");
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_write(qp, rkey, address, &value);
  must(ibv_wr_complete(qp), "ibv_wr_complete");
}

void atomic_write(Lab& lab) {
  Ends ends = atomic_writers(lab);
  ends.b.set_word(kCell, 1);
  write_atomically(ends, ends.b.memory.address() + kCell, ends.b.mr->rkey, 0x1122334455667788);
  const ibv_wc wc = expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.opcode, IBV_WC_ATOMIC_WRITE, "opcode");
  expect_equal(ends.b.word(kCell), 0x1122334455667788, "the cell");
  expect_equal(ends.b.word(kCell + 8), 0, "what lies behind");
}

void atomic_write_posted(Lab& lab) {
  Ends ends = atomic_writers(lab);
  ends.a.set_word(0, 77);
  post(ends.a, IBV_WR_ATOMIC_WRITE, 1, ends.a.sge(0, 8), ends.b, kCell);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(ends.b.word(kCell), 77, "the cell");
  ends.a.set_word(0, 78);
  post(ends.a, IBV_WR_ATOMIC_WRITE, 2, ends.a.sge(0, 8), ends.b, kCell, IBV_SEND_INLINE);
  ends.a.set_word(0, 0);  // inline data is the program's again at once
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_equal(ends.b.word(kCell), 78, "the cell");
  post(ends.a, IBV_WR_ATOMIC_WRITE, 3, ends.a.sge(0, 16), ends.b, kCell);
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR});
}

void atomic_write_refused(Lab& lab) {
  {
    Ends ends = atomic_writers(lab);
    write_atomically(ends, ends.b.memory.address() + 4, ends.b.mr->rkey, 1);
    expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  {
    Ends ends = atomic_writers(lab);
    write_atomically(ends, ends.b.memory.address(), ends.b.mr->rkey ^ 0xff, 1);
    expect_atomic_refused(lab, ends, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  EndOptions options;
  options.rc.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  Ends ends = atomic_writers(lab, options);
  write_atomically(ends, ends.b.memory.address(), ends.b.mr->rkey, 1);
  expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

void atomic_write_to_misaligned_memory(Lab& lab) {
  Ends ends = atomic_writers(lab);
  const MrPtr mr = odd_region(lab, ends.b);
  write_atomically(ends, 8, mr->rkey, 1);
  expect_atomic_refused(lab, ends, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

}  // namespace

std::span<const Row> atomic_rows() {
  static constexpr Row kRows[] = {
      {"atomics: what they see and leave", results},
      {"atomics: a misaligned address is an invalid request", misaligned},
      {"atomics: memory that is misaligned behind an aligned address", misaligned_memory},
      {"atomics: a region without REMOTE_ATOMIC is an access error", region_without_right},
      {"atomics: a QP without REMOTE_ATOMIC is an invalid request", qp_without_right},
      {"READ: with max_rd_atomic 0 it is a local QP operation error", none_outstanding_allowed},
      {"atomic write: by ibv_wr_atomic_write", atomic_write},
      {"atomic write: by ibv_post_send, inline too", atomic_write_posted},
      {"atomic write: misaligned, bad rkey, QP without REMOTE_WRITE", atomic_write_refused},
      {"atomic write: memory that is misaligned behind an aligned address",
       atomic_write_to_misaligned_memory},
  };
  return kRows;
}

}  // namespace rocemu::e2e
