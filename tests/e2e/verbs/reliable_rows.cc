// RC: order, fences, inline data, the drained queue, communication established, and every attribute
// that ibv_query_qp gives back.
#include <arpa/inet.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// A fenced SEND or WRITE behind a READ sends what the READ has brought, of whatever length.
void fence(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  constexpr uint32_t kTarget = 32768;
  for (const uint32_t bytes : {8u, 16u, 30000u}) {
    ends.b.fill(std::byte{3});
    ends.a.fill(std::byte{0});
    std::memset(ends.b.memory.data() + kTarget, 0, kTarget);
    post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(kTarget, bytes));
    post(ends.a, IBV_WR_RDMA_READ, 10, ends.a.sge(0, bytes), ends.b);
    post(ends.a, IBV_WR_SEND, 11, ends.a.sge(0, bytes), ends.b, 0, IBV_SEND_FENCE);
    for (const uint64_t id : {10, 11})
      expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
    expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_bytes({ends.b.memory.data() + kTarget, bytes}, std::byte{3}, "what was sent");

    ends.a.fill(std::byte{0});
    std::memset(ends.b.memory.data() + kTarget, 0, kTarget);
    post(ends.a, IBV_WR_RDMA_READ, 12, ends.a.sge(0, bytes), ends.b);
    post(ends.a, IBV_WR_RDMA_WRITE, 13, ends.a.sge(0, bytes), ends.b, kTarget, IBV_SEND_FENCE);
    for (const uint64_t id : {12, 13})
      expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
    expect_bytes({ends.b.memory.data() + kTarget, bytes}, std::byte{3}, "what was written");
  }
}

void inline_data(Lab& lab) {
  EndOptions options;
  options.max_inline_bytes = 64;
  Ends ends = make_ends(lab, options);
  for (const uint32_t bytes : {0u, 1u, 63u, 64u}) {
    ends.a.fill(std::byte{9});
    ends.b.fill(std::byte{0});
    post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 64));
    ibv_sge sge = ends.a.sge(0, bytes);
    sge.lkey = 0;  // is not looked at
    post(ends.a, IBV_WR_SEND, 10, sge, ends.b, 0, IBV_SEND_INLINE);
    ends.a.fill(std::byte{1});  // the program's again at once
    expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
    expect_equal(expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS}).byte_len, bytes,
                 "byte_len");
    expect_bytes({ends.b.memory.data(), bytes}, std::byte{9}, "what was sent");
    expect_bytes({ends.b.memory.data() + bytes, 64}, std::byte{0}, "what lies behind");
  }
}

void immediate(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM}) {
    post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
    SendRequest request(opcode, 10, ends.a.sge(0, 100));
    request.remote(ends.b.memory.address() + 4096, ends.b.mr->rkey);
    request.wr.imm_data = htonl(0xfeedbeef);
    post_ok(ends.a.qp.get(), request);
    expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
    const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM, "wc_flags");
    expect_equal(ntohl(wc.imm_data), 0xfeedbeef, "imm_data");
    expect_equal(wc.byte_len, 100, "byte_len");
    expect_equal(wc.opcode,
                 opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                 "opcode");
  }
}

void communication_established(Lab& lab) {
  Ends ends{make_end(lab.a(), {}), make_end(lab.b(), {})};
  for (End* end : {&ends.a, &ends.b}) {
    to_init(*end);
    to_rtr(*end, end == &ends.a ? ends.b : ends.a);
  }
  to_rts(ends.a);
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_COMM_EST);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  to_rts(ends.b);
}

// What was begun before SQD completes, and the event comes; what was not, and what is posted
// meanwhile, waits for RTS and touches nothing (IBTA vol 1, 10.3.1).
void drained(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 30000), ends.b, 32768);
  QpChange drain = change_to(IBV_QPS_SQD);
  drain.attr.en_sqd_async_notify = 1;
  drain.mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
  if (const int error = drain.apply(ends.a.qp.get()); error == EOPNOTSUPP)
    throw Skipped("the device has no SQD");
  else
    must(error, "ibv_modify_qp to SQD");
  expect_qp_event(lab.a(), ends.a.qp.get(), IBV_EVENT_SQ_DRAINED);
  constexpr std::chrono::milliseconds kMoment{20};  // on a NIC that is shaken completions are late
  const auto completion = poll_one(ends.a.send_cq.get(), kMoment);
  const bool was_begun = completion.has_value();
  if (was_begun) {
    expect_equal(completion->wr_id, 1, "wr_id of what was begun");
    expect_equal(completion->status, IBV_WC_SUCCESS, "status of what was begun");
  }
  post(ends.a, IBV_WR_RDMA_WRITE, 2, ends.a.sge(0, 8), ends.b);
  expect_no_completion(ends.a.send_cq.get());
  if (!was_begun)
    expect_bytes({ends.b.memory.data() + 32768, 30000}, std::byte{0}, "what was not begun");
  must(change_to(IBV_QPS_RTS).apply(ends.a.qp.get()), "ibv_modify_qp from SQD to RTS");
  if (!was_begun) expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
}

void attributes(Lab& lab) {
  EndOptions options;
  options.rc.path_mtu = IBV_MTU_512;
  options.rc.sq_psn = 0x123456;
  options.rc.rq_psn = 0x654321;
  options.rc.timeout = 15;
  options.rc.retry_cnt = 5;
  options.rc.rnr_retry = 4;
  options.rc.min_rnr_timer = 13;
  options.rc.max_rd_atomic = 3;
  options.rc.max_dest_rd_atomic = 2;
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), options)};
  to_init(ends.a);
  QpChange rtr = change_to_rtr(ends.a, ends.b);
  rtr.attr.ah_attr.grh.flow_label = 0x54321;
  rtr.attr.ah_attr.grh.traffic_class = 0x48;
  rtr.attr.ah_attr.sl = 3;
  must(rtr.apply(ends.a.qp.get()), "ibv_modify_qp to RTR");
  to_rts(ends.a);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(ends.a.qp.get(), &attr, ~0, &init), "ibv_query_qp");
  expect_equal(attr.qp_state, IBV_QPS_RTS, "qp_state");
  expect_equal(attr.cur_qp_state, IBV_QPS_RTS, "cur_qp_state");
  expect_equal(attr.path_mtu, IBV_MTU_512, "path_mtu");
  expect_equal(attr.sq_psn, 0x123456, "sq_psn");
  expect_equal(attr.rq_psn, 0x654321, "rq_psn");
  expect_equal(attr.dest_qp_num, ends.b.qp->qp_num, "dest_qp_num");
  expect_equal(attr.qp_access_flags & kEveryRight, attr.qp_access_flags, "qp_access_flags");
  expect_equal(attr.qp_access_flags | IBV_ACCESS_LOCAL_WRITE, kEveryRight, "qp_access_flags");
  expect_equal(attr.pkey_index, 0, "pkey_index");
  expect_equal(attr.port_num, kPort, "port_num");
  expect_equal(attr.timeout, 15, "timeout");
  expect_equal(attr.retry_cnt, 5, "retry_cnt");
  expect_equal(attr.rnr_retry, 4, "rnr_retry");
  expect_equal(attr.min_rnr_timer, 13, "min_rnr_timer");
  expect_equal(attr.max_rd_atomic, 3, "max_rd_atomic");
  expect_equal(attr.max_dest_rd_atomic, 2, "max_dest_rd_atomic");
  expect_equal(attr.ah_attr.is_global, 1, "is_global");
  expect_equal(attr.ah_attr.grh.sgid_index, lab.a().gid_index, "sgid_index");
  expect_equal(attr.ah_attr.grh.hop_limit, 64, "hop_limit");
  if (std::memcmp(&attr.ah_attr.grh.dgid, &lab.b().gid, sizeof(ibv_gid)) != 0)
    fail("dgid is not the peer's");
  expect_equal(attr.ah_attr.grh.flow_label, 0x54321, "flow_label");
  expect_equal(attr.ah_attr.grh.traffic_class, 0x48, "traffic_class");
  expect_equal(attr.ah_attr.sl, 3, "sl");
  expect_equal(attr.ah_attr.port_num, kPort, "port_num of the path");
  expect_equal(attr.sq_draining, 0, "sq_draining");
  expect_equal(attr.path_mig_state, IBV_MIG_MIGRATED, "path_mig_state");
  expect_as_created(ends.a, attr, init);
}

void retries_exceeded(Lab& lab) {
  EndOptions options;
  options.rc.timeout = 8;  // 1 ms
  options.rc.retry_cnt = 2;
  Ends ends = make_ends(lab, options);
  must(change_to(IBV_QPS_RESET).apply(ends.b.qp.get()), "ibv_modify_qp to RESET");
  post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8), ends.b);
  post(ends.a, IBV_WR_RDMA_WRITE, 2, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_RETRY_EXC_ERR});
  expect_flushed(ends.a.send_cq.get(), {2});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
}

}  // namespace

std::span<const Row> reliable_rows() {
  static constexpr Row kRows[] = {
      {"RC: a fence waits for the READ before it", fence},
      {"RC: inline data of 0 to max_inline_data bytes", inline_data},
      {"RC: immediate data", immediate},
      {"RC: communication established", communication_established},
      {"RC: the send queue drains, and goes on", drained},
      {"RC: ibv_query_qp gives every attribute back", attributes},
      {"RC: retries exceeded", retries_exceeded},
  };
  return kRows;
}

}  // namespace rocemu::e2e
