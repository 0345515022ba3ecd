// XRC: requests to SRQs by their numbers (IBTA vol 1, annex A14).
#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// A sender here; there a receiver, a domain, and an SRQ with a CQ.
struct Xrc {
  XrcdPtr xrcd;
  CqPtr cq;
  SrqPtr srq;
  uint32_t number = 0;
  Ends ends;
};

Xrc make_xrc(Lab& lab) {
  XrcdPtr xrcd = make_xrcd(lab.b());
  CqPtr cq(must(ibv_create_cq(lab.b().context.get(), 16, nullptr, nullptr, 0), "ibv_create_cq"));
  ibv_srq_init_attr_ex init{};
  init.attr.max_wr = 8;
  init.attr.max_sge = 1;
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  init.srq_type = IBV_SRQT_XRC;
  init.pd = lab.b().pd.get();
  init.xrcd = xrcd.get();
  init.cq = cq.get();
  SrqPtr srq(must(ibv_create_srq_ex(lab.b().context.get(), &init), "ibv_create_srq_ex"));
  uint32_t number = 0;
  must(ibv_get_srq_num(srq.get(), &number), "ibv_get_srq_num");
  EndOptions here, there;
  here.type = IBV_QPT_XRC_SEND;
  there.type = IBV_QPT_XRC_RECV;
  there.xrcd = xrcd.get();
  Ends ends{make_end(lab.a(), here), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  return {std::move(xrcd), std::move(cq), std::move(srq), number, std::move(ends)};
}

void post_to_srq(Xrc& xrc, ibv_wr_opcode opcode, uint64_t wr_id, uint32_t number,
                 size_t local_offset = 0) {
  SendRequest request(opcode, wr_id, xrc.ends.a.sge(local_offset, 100));
  request.remote(xrc.ends.b.memory.address() + 4096, xrc.ends.b.mr->rkey);
  request.wr.qp_type.xrc.remote_srqn = number;
  post_ok(xrc.ends.a.qp.get(), request);
}

void xrc_send_and_write(Lab& lab) {
  Xrc xrc = make_xrc(lab);
  std::byte* const here = xrc.ends.a.memory.data();
  std::byte* const there = xrc.ends.b.memory.data();
  std::memset(here, 1, 100);
  std::memset(here + 8192, 2, 100);
  post_srq_recv_ok(xrc.srq.get(), 1, xrc.ends.b.sge(0, 200));
  post_to_srq(xrc, IBV_WR_SEND, 10, xrc.number);
  post_to_srq(xrc, IBV_WR_RDMA_WRITE, 11, xrc.number, 8192);
  post_to_srq(xrc, IBV_WR_RDMA_READ, 12, xrc.number, 16384);
  for (const uint64_t id : {10, 11, 12})
    expect_completion(xrc.ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(xrc.cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.qp_num, xrc.ends.b.qp->qp_num, "qp_num");
  expect_equal(wc.byte_len, 100, "byte_len");
  expect_bytes({there, 100}, std::byte{1}, "what was sent");
  expect_bytes({there + 100, 3996}, std::byte{0}, "what lies behind it");
  expect_bytes({there + 4096, 100}, std::byte{2}, "what was written");
  expect_bytes({here + 16384, 100}, std::byte{2}, "what was read");
}

void xrc_unknown_srq(Lab& lab) {
  Xrc xrc = make_xrc(lab);
  post_srq_recv_ok(xrc.srq.get(), 1, xrc.ends.b.sge(0, 100));
  post_to_srq(xrc, IBV_WR_SEND, 10, xrc.number ^ 0x800);
  expect_completion(xrc.ends.a.send_cq.get(), 10, {IBV_WC_REM_INV_REQ_ERR});
  expect_state(xrc.ends.a.qp.get(), IBV_QPS_ERR);
  expect_state(xrc.ends.b.qp.get(), IBV_QPS_ERR);
  expect_qp_event(lab.b(), xrc.ends.b.qp.get(), IBV_EVENT_QP_REQ_ERR);
  expect_no_completion(xrc.cq.get());
}

void xrc_limit_event(Lab& lab) {
  Xrc xrc = make_xrc(lab);
  for (const uint64_t id : {1, 2}) post_srq_recv_ok(xrc.srq.get(), id, xrc.ends.b.sge(0, 100));
  set_limit(xrc.srq.get(), 2);
  post_to_srq(xrc, IBV_WR_SEND, 10, xrc.number);
  expect_completion(xrc.ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  expect_completion(xrc.cq.get(), 1, {IBV_WC_SUCCESS});
  expect_srq_event(lab.b(), xrc.srq.get(), IBV_EVENT_SRQ_LIMIT_REACHED);
  post_to_srq(xrc, IBV_WR_SEND, 11, xrc.number);
  expect_completion(xrc.ends.a.send_cq.get(), 11, {IBV_WC_SUCCESS});
  expect_completion(xrc.cq.get(), 2, {IBV_WC_SUCCESS});
  lab.check_no_events(std::chrono::milliseconds(20));
}

}  // namespace

std::span<const Row> xrc_rows() {
  static constexpr Row kRows[] = {
      {"XRC: SEND, WRITE and READ by the number of an SRQ", xrc_send_and_write},
      {"XRC: the limit event of an SRQ", xrc_limit_event},
      {"XRC: an unknown SRQ is an invalid request", xrc_unknown_srq},
  };
  return kRows;
}

}  // namespace rocemu::e2e
