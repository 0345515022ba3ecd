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
  if (to == IBV_QPS_INIT && from == IBV_QPS_RESET) return change_to_init(end);
  if (to == IBV_QPS_RTR) return change_to_rtr(end, peer);
  if (to == IBV_QPS_RTS && from != IBV_QPS_RTS && from != IBV_QPS_SQD) return change_to_rts(end);
  return change_to(to);
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
      const int error = change(end, peer, from, to).apply(end.qp.get());
      const int due = is_legal(from, to) ? 0 : EINVAL;
      if (error != due)
        fail("from %s to %s: %s, must be %s", name_of(from), name_of(to), errno_text(error).c_str(),
             errno_text(due).c_str());
      expect_state(end.qp.get(), due == 0 ? to : from);
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
    QpChange next = to == IBV_QPS_RTR ? change_to_rtr(ends.a, ends.b) : change_to(to);
    expect_errno(next.apply(ends.a.qp.get()), {legal ? 0 : EINVAL}, name_of(to));
    expect_state(ends.a.qp.get(), legal ? to : IBV_QPS_SQE);
  }
}

constexpr Row kRows[] = {
    {"states: every change of an RC QP", of_rc},
    {"states: every change of a UC QP", of_uc},
    {"states: every change of a UD QP", of_ud},
    {"states: every change of XRC QPs", of_xrc},
    {"states: every change from SQE", from_send_queue_error},
};

}  // namespace

std::span<const Row> transition_rows() { return kRows; }

}  // namespace rocemu::e2e
