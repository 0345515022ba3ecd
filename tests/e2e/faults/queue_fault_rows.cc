// Faults of QPs, CQs, completions and events.
#include <algorithm>
#include <cinttypes>
#include <thread>

#include "tests/e2e/faults/asked_fault.h"
#include "tests/e2e/faults/fault_rows.h"
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

using std::chrono::milliseconds;

std::string qp_of(const End& end) { return "qp=" + std::to_string(end.qp->qp_num); }

EndOptions impatient() {
  EndOptions options;
  options.rc.timeout = 8;  // 1 ms
  options.rc.retry_cnt = 1;
  return options;
}

void send(Ends& ends, uint64_t wr_id) {
  post(ends.a, IBV_WR_SEND, wr_id, ends.a.sge(0, 100), ends.b);
}

// Two SENDs wait for a receive: the first of them fails, the second is flushed. The peer finds out
// when it asks.
void oldest_request_fails(Lab& lab) {
  Ends ends = make_ends(lab, impatient());
  send(ends, 1);
  send(ends, 2);
  AskedFault fault(device_of(lab.a()) + " qp-error status=rem-op-err " + qp_of(ends.a));
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_REM_OP_ERR});
  expect_flushed(ends.a.send_cq.get(), {2});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
  lab.check_no_events();
  expect_equal(fault.strikes(), 1, "strikes");
  post(ends.b, IBV_WR_RDMA_WRITE, 7, ends.b.sge(0, 8), ends.a);
  expect_completion(ends.b.send_cq.get(), 7, {IBV_WC_RETRY_EXC_ERR});
  must(change_to(IBV_QPS_RESET).apply(ends.a.qp.get()), "RESET");
  must(change_to(IBV_QPS_RESET).apply(ends.b.qp.get()), "RESET");
  connect(ends.a, ends.b);
  expect_one_send(ends);
}

void idle_qp_is_fatal(Lab& lab) {
  Ends ends = make_ends(lab, impatient());
  post_recv_ok(ends.a.qp.get(), 5, ends.a.sge(0, 100));
  AskedFault fault(device_of(lab.a()) + " qp-error " + qp_of(ends.a));
  expect_qp_event(lab.a(), ends.a.qp.get(), IBV_EVENT_QP_FATAL);
  expect_flushed(ends.a.recv_cq.get(), {5});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

// Exactly the third request, in its turn; those before it succeed.
void third_request_fails(Lab& lab) {
  Ends ends = make_ends(lab, impatient());
  AskedFault fault(device_of(lab.a()) + " qp-error status=rem-access-err request=3 " +
                   qp_of(ends.a));
  for (uint64_t i = 1; i <= 4; ++i) post(ends.a, IBV_WR_RDMA_WRITE, i, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_REM_ACCESS_ERR});
  expect_flushed(ends.a.send_cq.get(), {4});
  if (fault.state() != "over") fail("the fault is %s", fault.state().c_str());
}

// The QP fails at the third packet that comes to it: two WRITEs are done, the third is not
// answered.
void third_packet_is_fatal(Lab& lab) {
  Ends ends = make_ends(lab, impatient());
  AskedFault fault(device_of(lab.b()) + " qp-error packet=3 " + qp_of(ends.b));
  for (uint64_t i = 1; i <= 2; ++i) {
    post(ends.a, IBV_WR_RDMA_WRITE, i, ends.a.sge(0, 100), ends.b);
    expect_completion(ends.a.send_cq.get(), i, {IBV_WC_SUCCESS});
  }
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
  expect_equal(fault.strikes(), 0, "strikes after two packets");
  post(ends.a, IBV_WR_RDMA_WRITE, 3, ends.a.sge(0, 100), ends.b);
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_QP_FATAL);
  expect_state(ends.b.qp.get(), IBV_QPS_ERR);
  expect_equal(fault.strikes(), 1, "strikes");
}

void cq_in_error(Lab& lab) {
  Ends ends = make_ends(lab, impatient());
  AskedFault fault(device_of(lab.a()) + " cq-error " + qp_of(ends.a));
  expect_cq_event(lab.a(), ends.a.send_cq.get(), IBV_EVENT_CQ_ERR);
  expect_qp_event(lab.a(), ends.a.qp.get(), IBV_EVENT_QP_FATAL);
  expect_cq_event(lab.a(), ends.a.recv_cq.get(), IBV_EVENT_CQ_ERR);
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
}

// The data are there, the completion says otherwise, and the QP goes on.
void status_is_changed(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  AskedFault fault(device_of(lab.a()) + " completion-status status=loc-prot-err nth=2 " +
                   qp_of(ends.a));
  for (uint64_t i = 1; i <= 3; ++i) post(ends.a, IBV_WR_RDMA_WRITE, i, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_LOC_PROT_ERR});
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_state(ends.a.qp.get(), IBV_QPS_RTS);
  AskedFault other(device_of(lab.a()) + " completion-status status=fatal-err from=rem-op-err");
  expect_one_send(ends);
  expect_equal(other.strikes(), 0, "strikes of another status");
}

// One completion in a hundred is 100 us late; all come, in their order.
void bnxt_holds_completions_back(Lab& lab) {
  constexpr uint64_t kWrites = 2000;
  Ends ends = make_ends(lab, IBV_QPT_RC);
  AskedFault fault(device_of(lab.a()) + " quirks=bnxt");
  for (uint64_t i = 1; i <= kWrites; ++i) {
    post(ends.a, IBV_WR_RDMA_WRITE, i, ends.a.sge(0, 8), ends.b);
    expect_completion(ends.a.send_cq.get(), i, {IBV_WC_SUCCESS});
  }
  const uint64_t strikes = fault.strikes();
  if (strikes < 2 || strikes > kWrites / 10)
    fail("%" PRIu64 " of %" PRIu64 " completions were late", strikes, kWrites);
}

void completions_are_late(Lab& lab) {
  constexpr milliseconds kDelay{200};
  Ends ends = make_ends(lab, IBV_QPT_RC);
  {
    AskedFault fault(device_of(lab.a()) + " completion-late delay=200ms " + qp_of(ends.a));
    const auto began = Clock::now();
    post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 100), ends.b);
    post(ends.a, IBV_WR_RDMA_WRITE, 2, ends.a.sge(0, 100), ends.b);
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    if (Clock::now() - began < kDelay) fail("the completion is not late");
    expect_completion(ends.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  }
  {
    AskedFault fault(device_of(lab.a()) + " completion-late delay=60s " + qp_of(ends.a));
    post(ends.a, IBV_WR_RDMA_WRITE, 3, ends.a.sge(0, 100), ends.b);
    expect_no_completion(ends.a.send_cq.get());
  }
  // What was held back is shown when the fault is taken back.
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_one_send(ends);
}

// The QP is destroyed while its completion is held back: it never comes.
void late_completions_of_nobody(Lab& lab) {
  EndOptions options;
  const CqPtr cq(
      must(ibv_create_cq(lab.a().context.get(), 16, nullptr, nullptr, 0), "ibv_create_cq"));
  options.send_cq = options.recv_cq = cq.get();
  End a = make_end(lab.a(), options);
  End b = make_end(lab.b(), {});
  connect(a, b);
  AskedFault fault(device_of(lab.a()) + " completion-late delay=300ms");
  post(a, IBV_WR_RDMA_WRITE, 1, a.sge(0, 8), b);
  a.set_word(0, 0);
  std::this_thread::sleep_for(milliseconds(10));
  a.qp.reset();
  std::this_thread::sleep_for(milliseconds(350));
  expect_no_completion(cq.get());
}

// A completion event follows a late completion, and not before.
void events_wait_for_late_completions(Lab& lab) {
  EndOptions options;
  options.with_channel = true;
  Ends ends = make_ends(lab, options);
  AskedFault fault(device_of(lab.a()) + " completion-late delay=100ms " + qp_of(ends.a));
  must(ibv_req_notify_cq(ends.a.send_cq.get(), 0), "ibv_req_notify_cq");
  const auto began = Clock::now();
  post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8), ends.b);
  expect_completion_event(ends.a, ends.a.send_cq.get());
  if (Clock::now() - began < milliseconds(100)) fail("the event is early");
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
}

struct SharedReceives {
  SrqPtr srq;
  End a, b;
};

SharedReceives make_shared(Lab& lab) {
  SrqPtr srq = make_srq(lab.b(), 16);
  EndOptions options = impatient();
  options.srq = srq.get();
  SharedReceives made{std::move(srq), make_end(lab.a(), impatient()), make_end(lab.b(), options)};
  connect(made.a, made.b);
  return made;
}

void use_a_receive(SharedReceives& ends) {
  post_srq_recv_ok(ends.srq.get(), 3, ends.b.sge(0, 100));
  set_limit(ends.srq.get(), 1);
  post(ends.a, IBV_WR_SEND, 1, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 3, {IBV_WC_SUCCESS});
}

void srq_limit_is_lost(Lab& lab) {
  SharedReceives ends = make_shared(lab);
  {
    AskedFault fault(device_of(lab.b()) + " event-lost event=srq-limit");
    use_a_receive(ends);
    lab.check_no_events(milliseconds(50));
    expect_equal(fault.strikes(), 1, "strikes");
  }
  use_a_receive(ends);
  expect_srq_event(lab.b(), ends.srq.get(), IBV_EVENT_SRQ_LIMIT_REACHED);
}

void last_wqe_is_late(Lab& lab) {
  SharedReceives ends = make_shared(lab);
  AskedFault fault(device_of(lab.b()) + " event-late event=last-wqe delay=150ms");
  const auto began = Clock::now();
  must(change_to(IBV_QPS_ERR).apply(ends.b.qp.get()), "ERROR");
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_QP_LAST_WQE_REACHED);
  if (Clock::now() - began < milliseconds(150)) fail("the event is not late");
}

// Destroying a QP waits for no event that never comes, and a late one is not told of what is gone.
void late_event_of_nobody(Lab& lab) {
  SharedReceives ends = make_shared(lab);
  AskedFault fault(device_of(lab.b()) + " event-late delay=300ms");
  must(change_to(IBV_QPS_ERR).apply(ends.b.qp.get()), "ERROR");
  ends.b.qp.reset();
  lab.check_no_events(milliseconds(350));
}

void rxe_tells_no_last_wqe(Lab& lab) {
  SharedReceives ends = make_shared(lab);
  AskedFault fault(device_of(lab.b()) + " quirks=rxe");
  must(change_to(IBV_QPS_ERR).apply(ends.b.qp.get()), "ERROR");
  lab.check_no_events(milliseconds(50));
}

}  // namespace

std::span<const Row> queue_fault_rows() {
  static constexpr Row kRows[] = {
      {"qp-error: the oldest request has the status", oldest_request_fails},
      {"qp-error: a QP without requests is told of", idle_qp_is_fatal},
      {"qp-error: the third request fails, and no other", third_request_fails},
      {"qp-error: at the third packet", third_packet_is_fatal},
      {"cq-error: the CQ and its QPs", cq_in_error},
      {"completion-status: one of three", status_is_changed},
      {"completion-late: all that come meanwhile", completions_are_late},
      {"completion-late: the QP is gone before", late_completions_of_nobody},
      {"completion-late: events wait, too", events_wait_for_late_completions},
      {"event-lost: the SRQ's limit", srq_limit_is_lost},
      {"event-late: the last WQE", last_wqe_is_late},
      {"event-late: the QP is gone before", late_event_of_nobody},
      {"quirks=bnxt: a completion is held back at times", bnxt_holds_completions_back},
      {"quirks=rxe: no last WQE", rxe_tells_no_last_wqe},
  };
  return kRows;
}

}  // namespace rocemu::e2e
