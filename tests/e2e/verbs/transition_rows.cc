// Every pair of QP states of every service: which changes ibv_modify_qp makes, and that the others
// are refused and change nothing (IBTA vol 1, 10.3.1; ibv_modify_qp(3)).
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

const char* name_of(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[state];
}

bool is_legal(ibv_qp_state from, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR:
      return true;
    case IBV_QPS_INIT:
      return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
    case IBV_QPS_RTR:
      return from == IBV_QPS_INIT;
    case IBV_QPS_RTS:
      return from == IBV_QPS_RTR || from == IBV_QPS_RTS || from == IBV_QPS_SQD;
    case IBV_QPS_SQD:
      return from == IBV_QPS_RTS || from == IBV_QPS_SQD;
    default:
      return false;  // SQE is for the device alone to go to
  }
}

// The specification lets a QP go to ERR from every state, Linux' core not from RESET.
bool is_left_open(ibv_qp_state from, ibv_qp_state to) {
  return from == IBV_QPS_RESET && to == IBV_QPS_ERR;
}

QpChange change(const End& end, const End& peer, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_INIT && from != IBV_QPS_INIT) return change_to_init(end);
  if (to == IBV_QPS_RTR) return change_to_rtr(end, peer);
  const bool needs_nothing = from == IBV_QPS_RTS || from == IBV_QPS_SQD || from == IBV_QPS_SQE;
  if (to == IBV_QPS_RTS && !needs_nothing) return change_to_rts(end);
  return change_to(to);
}

// What is refused brings other values than those there are, to be seen if they are taken.
QpChange with_other_values(QpChange change) {
  ibv_qp_attr& attr = change.attr;
  attr.path_mtu = IBV_MTU_512;
  attr.qkey = 0x111;
  attr.rq_psn = 0x222;
  attr.sq_psn = 0x333;
  attr.dest_qp_num = 0x444;
  attr.qp_access_flags = 0;
  attr.ah_attr.grh.hop_limit = 5;
  attr.timeout = 9;
  attr.retry_cnt = attr.rnr_retry = 2;
  attr.min_rnr_timer = 7;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 3;
  return change;
}

struct Value {
  const char* name;
  uint64_t value;
};

std::vector<Value> values_of(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must(ibv_query_qp(qp, &attr, ~0, &init), "ibv_query_qp");
  const ibv_global_route& grh = attr.ah_attr.grh;
  return {{"qp_state", attr.qp_state},
          {"cur_qp_state", attr.cur_qp_state},
          {"path_mtu", attr.path_mtu},
          {"qkey", attr.qkey},
          {"rq_psn", attr.rq_psn},
          {"sq_psn", attr.sq_psn},
          {"dest_qp_num", attr.dest_qp_num},
          {"qp_access_flags", attr.qp_access_flags},
          {"is_global", attr.ah_attr.is_global},
          {"subnet_prefix", grh.dgid.global.subnet_prefix},
          {"interface_id", grh.dgid.global.interface_id},
          {"sgid_index", grh.sgid_index},
          {"hop_limit", grh.hop_limit},
          {"pkey_index", attr.pkey_index},
          {"port_num", attr.port_num},
          {"timeout", attr.timeout},
          {"retry_cnt", attr.retry_cnt},
          {"rnr_retry", attr.rnr_retry},
          {"min_rnr_timer", attr.min_rnr_timer},
          {"max_rd_atomic", attr.max_rd_atomic},
          {"max_dest_rd_atomic", attr.max_dest_rd_atomic}};
}

void expect_refused_change(ibv_qp* qp, QpChange change, ibv_qp_state from, ibv_qp_state to) {
  const std::vector<Value> before = values_of(qp);
  const int error = with_other_values(change).apply(qp);
  const std::vector<Value> after = values_of(qp);
  if (error != EINVAL)
    fail("from %s to %s: %s, must be EINVAL", name_of(from), name_of(to),
         errno_text(error).c_str());
  for (size_t i = 0; i < before.size(); ++i)
    if (after[i].value != before[i].value)
      fail("from %s to %s, which is refused: %s was %#llx and is %#llx", name_of(from), name_of(to),
           before[i].name, static_cast<unsigned long long>(before[i].value),
           static_cast<unsigned long long>(after[i].value));
}

void expect_change(ibv_qp* qp, QpChange change, ibv_qp_state from, ibv_qp_state to) {
  if (const int error = change.apply(qp); error != 0)
    fail("from %s to %s: %s", name_of(from), name_of(to), errno_text(error).c_str());
  expect_state(qp, to);
}

void bring_to(End& end, const End& peer, ibv_qp_state state) {
  must(change_to(IBV_QPS_RESET).apply(end.qp.get()), "ibv_modify_qp to RESET");
  if (state == IBV_QPS_RESET) return;
  to_init(end);
  if (state >= IBV_QPS_RTR && state != IBV_QPS_ERR) to_rtr(end, peer);
  if (state >= IBV_QPS_RTS && state != IBV_QPS_ERR) to_rts(end);
  if (state > IBV_QPS_RTS)
    must(change_to(state).apply(end.qp.get()), "ibv_modify_qp to SQD or ERR");
}

void try_every_pair(End& end, const End& peer) {
  for (const ibv_qp_state from : kStates) {
    if (from == IBV_QPS_SQE) continue;  // reached by a failed request alone
    for (const ibv_qp_state to : kStates) {
      if (is_left_open(from, to)) continue;
      bring_to(end, peer, from);
      const auto expect = is_legal(from, to) ? expect_change : expect_refused_change;
      expect(end.qp.get(), change(end, peer, from, to), from, to);
    }
  }
}

void of_service(Lab& lab, ibv_qp_type type) {
  EndOptions options;
  options.type = type;
  End end = make_end(lab.a(), options);
  const End peer = make_end(lab.b(), options);
  try_every_pair(end, peer);
}

void of_rc(Lab& lab) { of_service(lab, IBV_QPT_RC); }
void of_uc(Lab& lab) { of_service(lab, IBV_QPT_UC); }
void of_ud(Lab& lab) { of_service(lab, IBV_QPT_UD); }

void of_xrc(Lab& lab) {
  const XrcdPtr xrcd = make_xrcd(lab.b());
  EndOptions sending, receiving;
  sending.type = IBV_QPT_XRC_SEND;
  receiving.type = IBV_QPT_XRC_RECV;
  receiving.xrcd = xrcd.get();
  End first = make_end(lab.a(), sending);
  End second = make_end(lab.b(), receiving);
  try_every_pair(first, second);
  try_every_pair(second, first);
}

// From SQE, where a failed request leads: to RTS, RESET and ERR alone.
void from_send_queue_error(Lab& lab) {
  for (const ibv_qp_state to : kStates) {
    if (to == IBV_QPS_SQE) continue;
    Ends ends = make_ends(lab, IBV_QPT_UC);
    SendRequest request(IBV_WR_SEND, 1, ends.a.sge(0, 8));
    request.sge.lkey ^= 0xff;
    post_ok(ends.a.qp.get(), request);
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_LOC_PROT_ERR});
    expect_state(ends.a.qp.get(), IBV_QPS_SQE);
    const bool legal = to == IBV_QPS_RTS || to == IBV_QPS_RESET || to == IBV_QPS_ERR;
    const auto expect = legal ? expect_change : expect_refused_change;
    expect(ends.a.qp.get(), change(ends.a, ends.b, IBV_QPS_SQE, to), IBV_QPS_SQE, to);
  }
}

// libibverbs writes what each query answers into ibv_qp::state, which may be from before a change
// that another thread has made since.
void after_a_late_query(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ends.a.qp->state = IBV_QPS_INIT;
  ends.b.qp->state = IBV_QPS_RESET;
  post_recv_ok(ends.b.qp.get(), 2, ends.b.sge(0, 8));
  SendRequest request(IBV_WR_SEND, 1, ends.a.sge(0, 8));
  post_ok(ends.a.qp.get(), request);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 2, {IBV_WC_SUCCESS});
}

}  // namespace

std::span<const Row> transition_rows() {
  static constexpr Row kRows[] = {
      {"states: every change of an RC QP", of_rc},
      {"states: every change of a UC QP", of_uc},
      {"states: every change of a UD QP", of_ud},
      {"states: every change of XRC QPs", of_xrc},
      {"states: every change from SQE", from_send_queue_error},
      {"states: a late answer to a query stops no posting", after_a_late_query},
  };
  return kRows;
}

}  // namespace rocemu::e2e
