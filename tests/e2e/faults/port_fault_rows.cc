// Faults of ports, links and addresses. What port-down does is seen by port_events.
#include <poll.h>

#include <cstring>
#include <thread>

#include "tests/e2e/faults/asked_fault.h"
#include "tests/e2e/faults/fault_rows.h"
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

using std::chrono::milliseconds;

void write(Ends& ends, uint64_t wr_id, uint32_t bytes) {
  post(ends.a, IBV_WR_RDMA_WRITE, wr_id, ends.a.sge(0, bytes), ends.b);
}

// Nothing passes, nobody is told, and the connection goes on afterwards.
void up_without_traffic(Lab& lab) {
  for (const char* direction : {"tx", "rx", "both"}) {
    Ends ends = make_ends(lab, IBV_QPT_RC);
    AskedFault fault(device_of(lab.a()) + " no-traffic direction=" + direction);
    write(ends, 1, 5000);
    expect_no_completion(ends.a.send_cq.get());
    std::this_thread::sleep_for(milliseconds(20));
    expect_no_completion(ends.a.send_cq.get());
    lab.check_no_events();
    fault.clear();
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  }
}

void no_traffic_for_long(Lab& lab) {
  EndOptions options;
  options.rc.timeout = 8;  // 1 ms
  options.rc.retry_cnt = 1;
  Ends ends = make_ends(lab, options);
  AskedFault fault(device_of(lab.b()) + " no-traffic");
  write(ends, 1, 8);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_RETRY_EXC_ERR});
}

void no_traffic_now_and_then(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const auto began = Clock::now();
  AskedFault fault(device_of(lab.b()) + " no-traffic for=20ms every=100ms times=3");
  uint64_t wr_id = 0;
  while (fault.state() != "over") {
    write(ends, ++wr_id, 5000);
    expect_completion(ends.a.send_cq.get(), wr_id, {IBV_WC_SUCCESS});
  }
  if (Clock::now() - began < milliseconds(220)) fail("it was over too early");
  expect_equal(fault.strikes(), 3, "strikes");
}

// One QP hears nothing; its neighbour on the same device does.
void one_qp_does_not_answer(Lab& lab) {
  EndOptions options;
  options.rc.timeout = 8;
  options.rc.retry_cnt = 1;
  Ends deaf = make_ends(lab, options);
  Ends other = make_ends(lab, options);
  AskedFault fault(device_of(lab.b()) + " no-answer qp=" + std::to_string(deaf.b.qp->qp_num));
  write(deaf, 1, 8);
  expect_completion(deaf.a.send_cq.get(), 1, {IBV_WC_RETRY_EXC_ERR});
  write(other, 2, 8);
  expect_completion(other.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  expect_state(deaf.b.qp.get(), IBV_QPS_RTS);
}

void storm_of_pause(Lab& lab) {
  for (const char* direction : {"tx", "rx"}) {
    Ends ends = make_ends(lab, IBV_QPT_RC);
    const auto began = Clock::now();
    AskedFault fault(device_of(lab.b()) + " pause for=100ms direction=" + direction);
    write(ends, 1, 5000);
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    if (Clock::now() - began < milliseconds(100)) fail("the pause was none");
  }
}

void expect_slow(Ends& ends) {
  constexpr uint32_t kBytes = 60000;
  const auto began = Clock::now();
  for (uint64_t i = 0; i < 4; ++i) write(ends, i, kBytes);
  for (uint64_t i = 0; i < 4; ++i) expect_completion(ends.a.send_cq.get(), i, {IBV_WC_SUCCESS});
  // 240,000 bytes at 20 Mbit/s are 96 ms; some leave at once.
  if (Clock::now() - began < milliseconds(60)) fail("it was not slow");
}

void slow_device(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  AskedFault fault(device_of(lab.a()) + " slow rate=20mbit");
  expect_slow(ends);
}

void slow_qp(Lab& lab) {
  Ends slow = make_ends(lab, IBV_QPT_RC);
  Ends other = make_ends(lab, IBV_QPT_RC);
  AskedFault fault(device_of(lab.a()) +
                   " slow rate=20mbit qp=" + std::to_string(slow.a.qp->qp_num));
  expect_slow(slow);
  fault.clear();
  write(slow, 9, 60000);
  expect_completion(slow.a.send_cq.get(), 9, {IBV_WC_SUCCESS});
}

void expect_gid_change(const Device& device) {
  pollfd waits{device.context->async_fd, POLLIN, 0};
  if (poll(&waits, 1, static_cast<int>(kPatience.count())) <= 0) fail("no event");
  ibv_async_event event;
  must(ibv_get_async_event(device.context.get(), &event), "ibv_get_async_event");
  ibv_ack_async_event(&event);
  if (event.event_type != IBV_EVENT_GID_CHANGE)
    fail("event '%s'", ibv_event_type_str(event.event_type));
}

ibv_gid gid_now(const Device& device) {
  ibv_gid gid{};
  must(ibv_query_gid(device.context.get(), kPort, device.gid_index, &gid), "ibv_query_gid");
  return gid;
}

// Connections that are there keep the address; new ones cannot be made by it.
void gid_is_removed(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  const std::string index = std::to_string(lab.a().gid_index);
  {
    AskedFault fault(device_of(lab.a()) + " gid-removed index=" + index);
    expect_gid_change(lab.a());
    expect_one_send(ends);
    End late = make_end(lab.a(), {});
    to_init(late);
    expect_errno(change_to_rtr(late, ends.b).apply(late.qp.get()), {EINVAL}, "RTR without the GID");
    End peer = make_end(lab.b(), {});
    to_init(peer);
    expect_errno(change_to_rtr(peer, ends.a).apply(peer.qp.get()), {EHOSTUNREACH, ENETUNREACH},
                 "RTR to nobody's GID");
  }
  expect_gid_change(lab.a());
  Ends again = make_ends(lab, IBV_QPT_RC);
  expect_one_send(again);
}

void gid_is_changed(Lab& lab) {
  const ibv_gid before = gid_now(lab.a());
  {
    AskedFault fault(device_of(lab.a()) +
                     " gid-changed to=10.77.200.1 index=" + std::to_string(lab.a().gid_index));
    expect_gid_change(lab.a());
    const ibv_gid now = gid_now(lab.a());
    if (now.raw[14] != 200) fail("the GID is what it was");
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), {})};
    to_init(ends.a);
    to_init(ends.b);
    to_rtr(ends.a, ends.b);
    QpChange change = change_to_rtr(ends.b, ends.a);
    change.attr.ah_attr.grh.dgid = now;
    must(change.apply(ends.b.qp.get()), "RTR to the new GID");
    to_rts(ends.a);
    to_rts(ends.b);
    expect_one_send(ends);
  }
  expect_gid_change(lab.a());
  const ibv_gid after = gid_now(lab.a());
  if (std::memcmp(&before, &after, sizeof(before)) != 0) fail("the GID did not come back");
}

}  // namespace

std::span<const Row> port_fault_rows() {
  static constexpr Row kRows[] = {
      {"no-traffic: a connection lives through it", up_without_traffic},
      {"no-traffic: for longer than retries last", no_traffic_for_long},
      {"no-traffic: every 100 ms, three times", no_traffic_now_and_then},
      {"no-answer: of one QP", one_qp_does_not_answer},
      {"pause: nothing is lost", storm_of_pause},
      {"slow: a device", slow_device},
      {"slow: a QP", slow_qp},
      {"gid-removed", gid_is_removed},
      {"gid-changed", gid_is_changed},
  };
  return kRows;
}

}  // namespace rocemu::e2e
