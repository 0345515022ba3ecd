// Rows of bad input about QP states: posting where the state forbids it (IBTA vol. 1, 10.3.1),
// transitions and attributes that ibv_modify_qp must refuse with EINVAL and without effect (man
// ibv_modify_qp), and what the error state does to outstanding work.
#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

LinkOptions unconnected() {
  LinkOptions options;
  options.connected = false;
  return options;
}

QpChange to_init() { return change_to_init(RcOptions{}); }
QpChange to_rts() { return change_to_rts(RcOptions{}); }
QpChange to_rtr(Lab& lab, const Link& link) {
  return change_to_rtr(RcOptions{}, lab.a(), lab.b().gid, lab.b().port.lid, link.b.qp->qp_num);
}

// The change that leads to a state from the one before it.
QpChange change_for(Lab& lab, const Link& link, ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_INIT:
      return to_init();
    case IBV_QPS_RTR:
      return to_rtr(lab, link);
    case IBV_QPS_RTS:
      return to_rts();
    default:
      return change_to(state);
  }
}

// Brings `a` to a state from RESET; to ERR by way of INIT, since RESET leads nowhere else.
void bring_to(Lab& lab, Link& link, ibv_qp_state state) {
  ibv_qp* qp = link.a.qp.get();
  must(change_to(IBV_QPS_RESET).apply(qp), "ibv_modify_qp to RESET");
  for (const ibv_qp_state step : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (state < step || (state == IBV_QPS_ERR && step != IBV_QPS_INIT)) break;
    must(change_for(lab, link, step).apply(qp), "ibv_modify_qp on the way");
  }
  if (state == IBV_QPS_ERR) must(change_to(state).apply(qp), "ibv_modify_qp to ERR");
  expect_state(qp, state);
}

void expect_refused_change(Link& link, QpChange change, ibv_qp_state stays, const char* what) {
  expect_errno(change.apply(link.a.qp.get()), {EINVAL}, what);
  expect_state(link.a.qp.get(), stays);
}

// ---- posting ----

void send_before_rts(Lab& lab) {
  Link link = lab.make_link(unconnected());
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    bring_to(lab, link, state);
    SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 8));
    ibv_send_wr* bad = nullptr;
    expect_errno(post_send(link.a.qp.get(), request.wr, &bad), {EINVAL},
                 "ibv_post_send before RTS");
    if (bad != &request.wr) fail("bad_wr is not the request");
    expect_no_completion(link.a.send_cq.get());
    expect_state(link.a.qp.get(), state);
  }
}

void receive_in_reset(Lab& lab) {
  Link link = lab.make_link(unconnected());
  ibv_sge sge = link.a.sge(0, 8);
  expect_errno(post_recv(link.a.qp.get(), 1, {&sge, 1}), {EINVAL}, "ibv_post_recv in RESET");
  bring_to(lab, link, IBV_QPS_INIT);
  must(post_recv(link.a.qp.get(), 1, {&sge, 1}), "ibv_post_recv in INIT");
}

// ---- transitions ----

void illegal_transitions(Lab& lab) {
  struct {
    ibv_qp_state from, to;
  } const transitions[] = {
      {IBV_QPS_RESET, IBV_QPS_RTR}, {IBV_QPS_RESET, IBV_QPS_RTS}, {IBV_QPS_RESET, IBV_QPS_SQD},
      {IBV_QPS_RESET, IBV_QPS_SQE}, {IBV_QPS_INIT, IBV_QPS_RTS},  {IBV_QPS_INIT, IBV_QPS_SQD},
      {IBV_QPS_RTR, IBV_QPS_INIT},  {IBV_QPS_RTR, IBV_QPS_SQD},   {IBV_QPS_RTS, IBV_QPS_INIT},
      {IBV_QPS_RTS, IBV_QPS_RTR},   {IBV_QPS_RTS, IBV_QPS_SQE},   {IBV_QPS_ERR, IBV_QPS_INIT},
      {IBV_QPS_ERR, IBV_QPS_RTR},   {IBV_QPS_ERR, IBV_QPS_RTS},
  };
  Link link = lab.make_link(unconnected());
  for (const auto& [from, to] : transitions) {
    bring_to(lab, link, from);
    char what[64];
    std::snprintf(what, sizeof what, "ibv_modify_qp from state %d to %d", from, to);
    expect_refused_change(link, change_for(lab, link, to), from, what);
  }
  bring_to(lab, link, IBV_QPS_INIT);
  expect_refused_change(link, change_to(static_cast<ibv_qp_state>(99)), IBV_QPS_INIT,
                        "ibv_modify_qp to state 99");
}

void missing_attributes(Lab& lab) {
  Link link = lab.make_link(unconnected());
  const auto try_without = [&](ibv_qp_state from, ibv_qp_state to,
                               std::initializer_list<int> bits) {
    for (const int bit : bits) {
      bring_to(lab, link, from);
      QpChange change = change_for(lab, link, to);
      change.mask &= ~bit;
      char what[64];
      std::snprintf(what, sizeof what, "ibv_modify_qp to state %d without attribute %#x", to, bit);
      expect_refused_change(link, change, from, what);
    }
  };
  try_without(IBV_QPS_RESET, IBV_QPS_INIT, {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS});
  try_without(IBV_QPS_INIT, IBV_QPS_RTR,
              {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN,
               IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER});
  try_without(
      IBV_QPS_RTR, IBV_QPS_RTS,
      {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC});
}

void forbidden_attributes(Lab& lab) {
  struct {
    ibv_qp_state from, to;
    int bit;
  } const cases[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PATH_MTU}, {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_QKEY},
      {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_SQ_PSN},   {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_TIMEOUT},
      {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_SQ_PSN},     {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_PATH_MTU},
      {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_DEST_QPN},    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RQ_PSN},
      {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_PATH_MTU},    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_RETRY_CNT},
  };
  Link link = lab.make_link(unconnected());
  for (const auto& [from, to, bit] : cases) {
    bring_to(lab, link, from);
    QpChange change = from == to ? change_to(to) : change_for(lab, link, to);
    change.attr.path_mtu = IBV_MTU_1024;
    change.mask |= bit;
    char what[80];
    std::snprintf(what, sizeof what, "ibv_modify_qp from state %d to %d with attribute %#x", from,
                  to, bit);
    expect_refused_change(link, change, from, what);
  }
}

void attributes_out_of_range(Lab& lab) {
  struct {
    ibv_qp_state from, to;
    const char* what;
    void (*spoil)(ibv_qp_attr& attr, const Device& device);
  } const cases[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, "port 0", [](auto& a, auto&) { a.port_num = 0; }},
      {IBV_QPS_RESET, IBV_QPS_INIT, "port 200", [](auto& a, auto&) { a.port_num = 200; }},
      {IBV_QPS_RESET, IBV_QPS_INIT, "P_Key index past the table",
       [](auto& a, auto& d) { a.pkey_index = d.port.pkey_tbl_len; }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "path MTU 0",
       [](auto& a, auto&) { a.path_mtu = static_cast<ibv_mtu>(0); }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "path MTU 6",
       [](auto& a, auto&) { a.path_mtu = static_cast<ibv_mtu>(6); }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "GID index past the table",
       [](auto& a, auto& d) {
         a.ah_attr.grh.sgid_index =
             static_cast<uint8_t>(d.port.gid_tbl_len > 255 ? 255 : d.port.gid_tbl_len);
       }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "no GRH on Ethernet",
       [](auto& a, auto&) { a.ah_attr.is_global = 0; }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "address vector with port 9",
       [](auto& a, auto&) { a.ah_attr.port_num = 9; }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "QP number of 25 bits",
       [](auto& a, auto&) { a.dest_qp_num = 1u << 24; }},
      {IBV_QPS_INIT, IBV_QPS_RTR, "RNR timer 32", [](auto& a, auto&) { a.min_rnr_timer = 32; }},
      {IBV_QPS_RTR, IBV_QPS_RTS, "timeout 32", [](auto& a, auto&) { a.timeout = 32; }},
      {IBV_QPS_RTR, IBV_QPS_RTS, "retry count 8", [](auto& a, auto&) { a.retry_cnt = 8; }},
      {IBV_QPS_RTR, IBV_QPS_RTS, "RNR retry 8", [](auto& a, auto&) { a.rnr_retry = 8; }},
  };
  Link link = lab.make_link(unconnected());
  for (const auto& row : cases) {
    bring_to(lab, link, row.from);
    QpChange change = change_for(lab, link, row.to);
    row.spoil(change.attr, lab.a());
    expect_refused_change(link, change, row.from, row.what);
  }
}

void more_reads_than_the_device_has(Lab& lab) {
  Link link = lab.make_link(unconnected());
  const auto over = [](int limit) { return static_cast<uint8_t>(limit + 1); };
  if (lab.a().attr.max_qp_rd_atom < 255) {
    bring_to(lab, link, IBV_QPS_INIT);
    QpChange change = to_rtr(lab, link);
    change.attr.max_dest_rd_atomic = over(lab.a().attr.max_qp_rd_atom);
    expect_refused_change(link, change, IBV_QPS_INIT, "max_dest_rd_atomic over max_qp_rd_atom");
  }
  if (lab.a().attr.max_qp_init_rd_atom < 255) {
    bring_to(lab, link, IBV_QPS_RTR);
    QpChange change = to_rts();
    change.attr.max_rd_atomic = over(lab.a().attr.max_qp_init_rd_atom);
    expect_refused_change(link, change, IBV_QPS_RTR, "max_rd_atomic over max_qp_init_rd_atom");
  }
}

void wrong_current_state(Lab& lab) {
  Link link = lab.make_link(unconnected());
  bring_to(lab, link, IBV_QPS_RTR);
  QpChange change = to_rts();
  change.attr.cur_qp_state = IBV_QPS_SQD;
  change.mask |= IBV_QP_CUR_STATE;
  expect_refused_change(link, change, IBV_QPS_RTR, "cur_qp_state other than the state");
}

// ---- the error state ----

void error_state_flushes_in_order(Lab& lab) {
  Link link = lab.make_link(unconnected());
  RcOptions rc;
  rc.timeout = 0;  // the peer does not answer, and that is waited for without end
  connect_one(link.a.qp.get(), lab.a(), rc, lab.b().gid, lab.b().port.lid, link.b.qp->qp_num);
  for (uint64_t id = 1; id <= 4; ++id) post_recv_ok(link.a.qp.get(), 100 + id, link.a.sge(0, 8));
  for (uint64_t id = 1; id <= 4; ++id) {
    SendRequest request(IBV_WR_SEND, id, link.a.sge(0, 8));
    if (id % 2 == 0) request.wr.send_flags = 0;  // flushed unsignalled requests complete as well
    post_ok(link.a.qp.get(), request);
  }
  expect_no_completion(link.a.send_cq.get());
  must(change_to(IBV_QPS_ERR).apply(link.a.qp.get()), "ibv_modify_qp to ERR");
  expect_flushed(link.a.send_cq.get(), {1, 2, 3, 4});
  expect_flushed(link.a.recv_cq.get(), {101, 102, 103, 104});
}

void posting_in_error_state(Lab& lab) {
  Link link = lab.make_link();
  must(change_to(IBV_QPS_ERR).apply(link.a.qp.get()), "ibv_modify_qp to ERR");
  SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 8));
  post_ok(link.a.qp.get(), request);
  request.wr.wr_id = 2;
  request.wr.send_flags = 0;
  post_ok(link.a.qp.get(), request);
  post_recv_ok(link.a.qp.get(), 11, link.a.sge(0, 8));
  post_recv_ok(link.a.qp.get(), 12, link.a.sge(0, 8));
  expect_flushed(link.a.send_cq.get(), {1, 2});
  expect_flushed(link.a.recv_cq.get(), {11, 12});
}

void used_again_after_error(Lab& lab) {
  Link link = lab.make_link();
  for (int round = 0; round < 3; ++round) {
    post_recv_ok(link.b.qp.get(), 11, link.b.sge(0, 64));
    SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 64));
    post_ok(link.a.qp.get(), request);
    expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_completion(link.b.recv_cq.get(), 11, {IBV_WC_SUCCESS});
    post_recv_ok(link.b.qp.get(), 12, link.b.sge(0, 64));
    for (const LinkEnd* end : {&link.a, &link.b}) {
      must(change_to(IBV_QPS_ERR).apply(end->qp.get()), "ibv_modify_qp to ERR");
    }
    expect_flushed(link.b.recv_cq.get(), {12});
    for (const LinkEnd* end : {&link.a, &link.b}) {
      must(change_to(IBV_QPS_RESET).apply(end->qp.get()), "ibv_modify_qp to RESET");
    }
    connect_pair(link.a.qp.get(), lab.a(), link.b.qp.get(), lab.b(), RcOptions{});
  }
}

// RESET takes outstanding work away without completions.
void reset_forgets_posted_work(Lab& lab) {
  Link link = lab.make_link();
  for (uint64_t id = 1; id <= 4; ++id) post_recv_ok(link.b.qp.get(), id, link.b.sge(0, 8));
  must(change_to(IBV_QPS_RESET).apply(link.b.qp.get()), "ibv_modify_qp to RESET");
  expect_no_completion(link.b.recv_cq.get());
  expect_state(link.b.qp.get(), IBV_QPS_RESET);
}

constexpr Row kStateRows[] = {
    {"post_send before RTS", send_before_rts},
    {"post_recv in RESET", receive_in_reset},
    {"illegal transitions", illegal_transitions},
    {"transitions without a required attribute", missing_attributes},
    {"transitions with a forbidden attribute", forbidden_attributes},
    {"attributes out of range", attributes_out_of_range},
    {"more outstanding READs than the device has", more_reads_than_the_device_has},
    {"cur_qp_state other than the state", wrong_current_state},
    {"the error state flushes everything in order", error_state_flushes_in_order},
    {"posting in the error state", posting_in_error_state},
    {"error, reset, and in use again (allowed)", used_again_after_error},
    {"reset forgets posted work (allowed)", reset_forgets_posted_work},
};

}  // namespace

std::span<const Row> state_rows() { return kStateRows; }

}  // namespace rocemu::e2e
