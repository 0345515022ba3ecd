// UC: what arrives, and what is lost in silence (IBTA vol 1, 9.8.2). A message that is lost is
// followed by a good one, so that no row waits for what does not come.
#include <arpa/inet.h>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kBytes = 3000;  // three packets at a path MTU of 1024

void uc_sends_and_writes(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UC);
  ends.a.fill(std::byte{1});
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, kBytes));
  post_recv_ok(ends.b.qp.get(), 2, ends.b.sge(0, 0));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, kBytes), ends.b);
  SendRequest write(IBV_WR_RDMA_WRITE_WITH_IMM, 11, ends.a.sge(0, kBytes));
  write.remote(ends.b.memory.address() + 8192, ends.b.mr->rkey);
  write.wr.imm_data = htonl(0xabcd);
  post_ok(ends.a.qp.get(), write);
  for (const uint64_t id : {10, 11}) expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  const ibv_wc sent = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(sent.byte_len, kBytes, "byte_len");
  const ibv_wc written = expect_completion(ends.b.recv_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_equal(written.opcode, IBV_WC_RECV_RDMA_WITH_IMM, "opcode");
  expect_equal(ntohl(written.imm_data), 0xabcd, "imm_data");
  expect_bytes({ends.b.memory.data(), kBytes}, std::byte{1}, "what was sent");
  expect_bytes({ends.b.memory.data() + 8192, kBytes}, std::byte{1}, "what was written");
}

// The sender of a lost message is told success; the receive is there for the next one.
void expect_lost(Ends& ends, uint64_t receive_id) {
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  post(ends.a, IBV_WR_SEND, 11, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 11, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), receive_id, {IBV_WC_SUCCESS});
  expect_equal(wc.byte_len, 100, "byte_len");
  expect_state(ends.a.qp.get(), IBV_QPS_RTS);
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

void uc_too_long(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UC);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, kBytes - 1));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, kBytes), ends.b);
  expect_lost(ends, 1);
}

void uc_without_receive(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UC);
  ends.a.set_word(0, 77);
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, kBytes), ends.b);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  // The peer has seen the SEND when the WRITE behind it is there.
  post(ends.a, IBV_WR_RDMA_WRITE, 12, ends.a.sge(0, 8), ends.b, 8192);
  expect_completion(ends.a.send_cq.get(), 12, {IBV_WC_SUCCESS});
  wait_for_word(ends.b, 8192, 77);
  expect_no_completion(ends.b.recv_cq.get());
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, kBytes));
  post(ends.a, IBV_WR_SEND, 13, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 13, {IBV_WC_SUCCESS});
  expect_equal(expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS}).byte_len, 100,
               "byte_len");
}

void uc_write_refused(Lab& lab, unsigned qp_access, uint32_t rkey_change) {
  EndOptions options;
  options.type = IBV_QPT_UC;
  options.rc.access = qp_access;
  Ends ends = make_ends(lab, options);
  ends.b.fill(std::byte{2});
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
  SendRequest write(IBV_WR_RDMA_WRITE, 10, ends.a.sge(0, kBytes));
  post_ok(ends.a.qp.get(),
          write.remote(ends.b.memory.address() + 8192, ends.b.mr->rkey ^ rkey_change));
  expect_lost(ends, 1);
  expect_bytes({ends.b.memory.data() + 8192, kBytes}, std::byte{2}, "the target");
}

void uc_bad_rkey(Lab& lab) { uc_write_refused(lab, kEveryRight, 0xff); }
void uc_without_right(Lab& lab) { uc_write_refused(lab, IBV_ACCESS_LOCAL_WRITE, 0); }

void uc_read_and_atomic(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_UC);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    SendRequest request(opcode, 1, ends.a.sge(0, 8));
    request.remote(ends.b.memory.address(), ends.b.mr->rkey);
    expect_send_queue_error(ends.a, request, IBV_WC_LOC_QP_OP_ERR);
  }
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
  post(ends.a, IBV_WR_SEND, 2, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
}

}  // namespace

std::span<const Row> unreliable_rows() {
  static constexpr Row kRows[] = {
      {"UC: SEND, and WRITE with immediate", uc_sends_and_writes},
      {"UC: a SEND longer than the receive is lost, the receive stays", uc_too_long},
      {"UC: a SEND without a receive is lost", uc_without_receive},
      {"UC: a WRITE with a bad rkey is lost", uc_bad_rkey},
      {"UC: a WRITE to a QP without REMOTE_WRITE is lost", uc_without_right},
      {"UC: no READ, no atomics; SQE is left for RTS", uc_read_and_atomic},
  };
  return kRows;
}

}  // namespace rocemu::e2e
