// Receives that QPs share: SRQs with their events, and XRC (IBTA vol 1, 10.2.9; annex A14).
#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// Two QPs of `b` on one SRQ, each with a peer.
struct Shared {
  SrqPtr srq;
  Ends first, second;
};

Shared make_shared(Lab& lab, uint32_t max_wr = 16) {
  SrqPtr srq = make_srq(lab.b(), max_wr);
  EndOptions there;
  there.srq = srq.get();
  const auto pair = [&] {
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), there)};
    connect(ends.a, ends.b);
    return ends;
  };
  Ends first = pair();
  Ends second = pair();
  return {std::move(srq), std::move(first), std::move(second)};
}

void set_limit(ibv_srq* srq, uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  must(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq with IBV_SRQ_LIMIT");
}

ibv_srq_attr query(ibv_srq* srq) {
  ibv_srq_attr attr{};
  must(ibv_query_srq(srq, &attr), "ibv_query_srq");
  return attr;
}

void send_and_receive(Ends& ends, uint64_t receive_id) {
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, 64), ends.b);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), receive_id, {IBV_WC_SUCCESS});
  expect_equal(wc.qp_num, ends.b.qp->qp_num, "qp_num");
}

void in_order_for_all(Lab& lab) {
  Shared shared = make_shared(lab);
  for (uint64_t id = 1; id <= 4; ++id)
    post_srq_recv_ok(shared.srq.get(), id, shared.first.b.sge(0, 64));
  send_and_receive(shared.first, 1);
  send_and_receive(shared.second, 2);
  send_and_receive(shared.second, 3);
  send_and_receive(shared.first, 4);
  ibv_sge sge = shared.first.b.sge(0, 8);
  expect_errno(post_recv(shared.first.b.qp.get(), 9, {&sge, 1}), {EINVAL},
               "ibv_post_recv to a QP with an SRQ");
}

// All of them send at once, and as there is a receive for each message none is lost, whatever the
// service.
void of_many(Lab& lab, ibv_qp_type type) {
  constexpr uint64_t kPairs = 16, kEach = 3;
  const SrqPtr srq = make_srq(lab.b(), kPairs * kEach);
  const CqPtr cq(must(ibv_create_cq(lab.b().context.get(), kPairs * kEach, nullptr, nullptr, 0),
                      "ibv_create_cq"));
  const AhPtr ah = type == IBV_QPT_UD ? make_ah(lab.a(), lab.b().gid) : AhPtr();
  EndOptions sending, receiving;
  sending.type = receiving.type = type;
  receiving.srq = srq.get();
  receiving.recv_cq = cq.get();
  std::vector<Ends> all;
  for (uint64_t i = 0; i < kPairs; ++i) {
    all.push_back({make_end(lab.a(), sending), make_end(lab.b(), receiving)});
    connect(all.back().a, all.back().b);
  }
  for (uint64_t i = 0; i < kPairs * kEach; ++i)
    post_srq_recv_ok(srq.get(), i, all[0].b.sge(1024 * i, 1024));
  for (uint64_t i = 0; i < kPairs * kEach; ++i) {
    Ends& ends = all[i % kPairs];
    SendRequest request(IBV_WR_SEND, i, ends.a.sge(0, 900));
    if (ah) address(request, ah.get(), ends.b);
    post_ok(ends.a.qp.get(), request);
  }
  for (uint64_t i = 0; i < kPairs * kEach; ++i) {
    expect_completion(all[i % kPairs].a.send_cq.get(), i, {IBV_WC_SUCCESS});
    expect_completion(cq.get(), i, {IBV_WC_SUCCESS});
  }
}

void of_many_rc(Lab& lab) { of_many(lab, IBV_QPT_RC); }
void of_many_uc(Lab& lab) { of_many(lab, IBV_QPT_UC); }
void of_many_ud(Lab& lab) { of_many(lab, IBV_QPT_UD); }

void limit_event(Lab& lab) {
  Shared shared = make_shared(lab);
  for (uint64_t id = 1; id <= 4; ++id)
    post_srq_recv_ok(shared.srq.get(), id, shared.first.b.sge(0, 64));
  set_limit(shared.srq.get(), 3);
  expect_equal(query(shared.srq.get()).srq_limit, 3, "srq_limit");
  send_and_receive(shared.first, 1);  // 3 are left
  send_and_receive(shared.first, 2);
  expect_srq_event(lab.b(), shared.srq.get(), IBV_EVENT_SRQ_LIMIT_REACHED);
  expect_equal(query(shared.srq.get()).srq_limit, 0, "srq_limit after the event");
  send_and_receive(shared.first, 3);
  lab.check_no_events(std::chrono::milliseconds(20));
  ibv_srq_attr attr{};
  attr.srq_limit = query(shared.srq.get()).max_wr + 1;
  expect_errno(ibv_modify_srq(shared.srq.get(), &attr, IBV_SRQ_LIMIT), {EINVAL},
               "a limit over max_wr");
}

void resized(Lab& lab) {
  if ((lab.b().attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0)
    throw Skipped("the device has no IBV_DEVICE_SRQ_RESIZE");
  Shared shared = make_shared(lab, 4);
  ibv_srq* srq = shared.srq.get();
  const auto resize = [srq](uint32_t max_wr) {
    ibv_srq_attr attr{};
    attr.max_wr = max_wr;
    return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
  };
  uint64_t posted = 0;
  const auto fill_up = [&] {
    ibv_sge sge = shared.first.b.sge(0, 64);
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (wr.wr_id = posted + 1; ibv_post_srq_recv(srq, &wr, &bad) == 0; ++wr.wr_id) ++posted;
    if (bad != &wr) fail("bad_wr is not the request that failed");
  };
  fill_up();
  const uint64_t before = posted;
  must(resize(64), "ibv_modify_srq with IBV_SRQ_MAX_WR");
  if (query(srq).max_wr < 64) fail("max_wr is %u after a resize to 64", query(srq).max_wr);
  fill_up();
  if (posted < 64) fail("only %llu receives fit", static_cast<unsigned long long>(posted));
  expect_errno(resize(static_cast<uint32_t>(before)), {EINVAL}, "fewer than there are receives");
  expect_errno(resize(0), {EINVAL}, "no receives at all");
  expect_errno(resize(static_cast<uint32_t>(lab.b().attr.max_srq_wr) + 1), {EINVAL},
               "more than max_srq_wr");
  for (uint64_t id = 1; id <= posted; ++id)
    send_and_receive(id % 2 == 0 ? shared.first : shared.second, id);
  must(resize(4), "ibv_modify_srq to fewer again");
  post_srq_recv_ok(srq, 1000, shared.first.b.sge(0, 64));
  send_and_receive(shared.first, 1000);
}

void empty_srq(Lab& lab) {
  SrqPtr srq = make_srq(lab.b(), 4);
  EndOptions here, there;
  here.rc.rnr_retry = 2;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), here), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  post(ends.a, IBV_WR_SEND, 1, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_RNR_RETRY_EXC_ERR});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

void last_wqe(Lab& lab) {
  Shared shared = make_shared(lab);
  post_srq_recv_ok(shared.srq.get(), 1, shared.first.b.sge(0, 64));
  must(change_to(IBV_QPS_ERR).apply(shared.first.b.qp.get()), "ibv_modify_qp to ERR");
  expect_qp_event(lab.b(), shared.first.b.qp.get(), IBV_EVENT_QP_LAST_WQE_REACHED);
  send_and_receive(shared.second, 1);  // the receive was not the dead QP's
}

// Class E of IBTA vol 1, 9.9.3: a receive that others could have had is not held back.
void datagram_too_long(Lab& lab) {
  SrqPtr srq = make_srq(lab.b(), 4);
  EndOptions here, there;
  here.type = there.type = IBV_QPT_UD;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), here), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_srq_recv_ok(srq.get(), 1, ends.b.sge(0, kGrhBytes + 99));
  post_srq_recv_ok(srq.get(), 2, ends.b.sge(0, kGrhBytes + 100));
  for (const uint64_t id : {10, 11}) {
    SendRequest request(IBV_WR_SEND, id, ends.a.sge(0, 100));
    address(request, ah.get(), ends.b);
    post_ok(ends.a.qp.get(), request);
    expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  }
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR});
  expect_completion(ends.b.recv_cq.get(), 2, {IBV_WC_SUCCESS});
}

// ---- XRC ----

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

void post_to_srq(Xrc& xrc, ibv_wr_opcode opcode, uint64_t wr_id, uint32_t number) {
  SendRequest request(opcode, wr_id, xrc.ends.a.sge(0, 100));
  request.remote(xrc.ends.b.memory.address() + 4096, xrc.ends.b.mr->rkey);
  request.wr.qp_type.xrc.remote_srqn = number;
  post_ok(xrc.ends.a.qp.get(), request);
}

void xrc_send_and_write(Lab& lab) {
  Xrc xrc = make_xrc(lab);
  post_srq_recv_ok(xrc.srq.get(), 1, xrc.ends.b.sge(0, 100));
  post_to_srq(xrc, IBV_WR_SEND, 10, xrc.number);
  post_to_srq(xrc, IBV_WR_RDMA_WRITE, 11, xrc.number);
  post_to_srq(xrc, IBV_WR_RDMA_READ, 12, xrc.number);
  for (const uint64_t id : {10, 11, 12})
    expect_completion(xrc.ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(xrc.cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.qp_num, xrc.ends.b.qp->qp_num, "qp_num");
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

constexpr Row kRows[] = {
    {"SRQ: its receives are taken in order by all its QPs", in_order_for_all},
    {"SRQ: of sixteen RC QPs", of_many_rc},
    {"SRQ: of sixteen UC QPs, none of whose messages is lost", of_many_uc},
    {"SRQ: of sixteen UD QPs, none of whose messages is lost", of_many_ud},
    {"SRQ: the limit event comes once", limit_event},
    {"SRQ: resized with receives inside", resized},
    {"SRQ: an empty one is RNR retries exceeded for the sender", empty_srq},
    {"SRQ: last WQE reached when its QP fails", last_wqe},
    {"SRQ: a datagram that is too long costs a receive, and no more", datagram_too_long},
    {"XRC: SEND, WRITE and READ by the number of an SRQ", xrc_send_and_write},
    {"XRC: the limit event of an SRQ", xrc_limit_event},
    {"XRC: an unknown SRQ is an invalid request", xrc_unknown_srq},
};

}  // namespace

std::span<const Row> shared_receive_rows() { return kRows; }

}  // namespace rocemu::e2e
