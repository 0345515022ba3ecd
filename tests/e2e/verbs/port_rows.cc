// What a program hears of its port: errors, activity, changes of GIDs (IBTA vol 1, 11.6.3.3;
// ibv_get_async_event(3)). Someone has to make the changes: commands, which the environment names
// (see port_events.cc).
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

void change(const char* variable) {
  const char* command = std::getenv(variable);
  if (command == nullptr) throw Skipped(std::string(variable) + " names no command");
  if (const int code = std::system(command); code != 0)
    fail("%s: '%s' ended with %d", variable, command, code);
}

// Other events of the port may come before it: with a link go addresses.
void expect_port_event(const Device& device, ibv_event_type type) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waits{device.context->async_fd, POLLIN, 0};
    if (left <= 0 || poll(&waits, 1, static_cast<int>(left)) <= 0)
      fail("no event '%s'", ibv_event_type_str(type));
    ibv_async_event event;
    must(ibv_get_async_event(device.context.get(), &event), "ibv_get_async_event");
    ibv_ack_async_event(&event);
    if (event.event_type == type && event.element.port_num == kPort) return;
    if (event.event_type != IBV_EVENT_GID_CHANGE)
      fail("event '%s' of element %d, due is '%s'", ibv_event_type_str(event.event_type),
           event.element.port_num, ibv_event_type_str(type));
  }
}

void expect_at_both(Lab& lab, ibv_event_type type) {
  expect_port_event(lab.a(), type);
  expect_port_event(lab.b(), type);
}

void expect_port_state(const Device& device, ibv_port_state due) {
  ibv_port_attr attr{};
  must(ibv_query_port(device.context.get(), kPort, &attr), "ibv_query_port");
  expect_equal(attr.state, due, "the port's state");
}

bool to_itself(const Lab& lab) { return std::strcmp(lab.a().name(), lab.b().name()) == 0; }

// A connection lives through it, since its retries last longer. What a device sends to itself need
// not wait for its port.
void down_and_up(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  expect_one_send(ends);
  change("PORT_DOWN");
  expect_at_both(lab, IBV_EVENT_PORT_ERR);
  expect_port_state(lab.a(), IBV_PORT_DOWN);
  ends.a.fill(std::byte{3});
  post(ends.a, IBV_WR_RDMA_WRITE, 3, ends.a.sge(0, 30000), ends.b, 32768);
  if (!to_itself(lab)) expect_no_completion(ends.a.send_cq.get());
  change("PORT_UP");
  expect_at_both(lab, IBV_EVENT_PORT_ACTIVE);
  expect_port_state(lab.a(), IBV_PORT_ACTIVE);
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
  expect_bytes({ends.b.memory.data() + 32768, 30000}, std::byte{3}, "what was written");
  expect_one_send(ends);
}

// Objects are made and destroyed as ever while the port is down; where to send to was found before.
// What a device sends to itself may arrive.
void down_for_long(Lab& lab) {
  {
    EndOptions options;
    options.rc.timeout = 8;  // 1 ms
    options.rc.retry_cnt = 1;
    Ends ends = make_ends(lab, options);
    change("PORT_DOWN");
    expect_at_both(lab, IBV_EVENT_PORT_ERR);
    post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8), ends.b);
    expect_completion(
        ends.a.send_cq.get(), 1,
        {IBV_WC_RETRY_EXC_ERR, to_itself(lab) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR});
    End other = make_end(lab.a(), options);
    to_init(other);
  }
  change("PORT_UP");
  expect_at_both(lab, IBV_EVENT_PORT_ACTIVE);
  Ends ends = make_ends(lab, IBV_QPT_RC);
  expect_one_send(ends);
}

std::vector<ibv_gid_entry> gids_of(const Device& device) {
  std::vector<ibv_gid_entry> table(static_cast<size_t>(device.port.gid_tbl_len));
  const ssize_t entries = ibv_query_gid_table(device.context.get(), table.data(), table.size(), 0);
  if (entries < 0) fail_errno(static_cast<int>(-entries), "ibv_query_gid_table");
  table.resize(static_cast<size_t>(entries));
  return table;
}

// The event may come before the last change that it speaks of.
std::vector<ibv_gid_entry> wait_for_gids(const Device& device, size_t count) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    std::vector<ibv_gid_entry> table = gids_of(device);
    if (table.size() == count) return table;
    if (Clock::now() > deadline) fail("%zu GIDs, must be %zu", table.size(), count);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// The one that is not among those before.
ibv_gid_entry wait_for_new_gid(const Device& device, const std::vector<ibv_gid_entry>& before) {
  const std::vector<ibv_gid_entry> after = wait_for_gids(device, before.size() + 1);
  const auto is_new = [&](const ibv_gid_entry& entry) {
    return std::none_of(before.begin(), before.end(), [&](const ibv_gid_entry& old) {
      return std::memcmp(&old.gid, &entry.gid, sizeof(ibv_gid)) == 0;
    });
  };
  const auto added = std::find_if(after.begin(), after.end(), is_new);
  if (added == after.end()) fail("the GID that was added is not in the table");
  return *added;
}

// The new ones serve a connection; when they are gone nothing can be made with them.
void gid_comes_and_goes(Lab& lab) {
  const std::vector<ibv_gid_entry> before[] = {gids_of(lab.a()), gids_of(lab.b())};
  change("GID_ADD");
  expect_at_both(lab, IBV_EVENT_GID_CHANGE);
  const ibv_gid_entry added_a = wait_for_new_gid(lab.a(), before[0]);
  const ibv_gid_entry added_b = wait_for_new_gid(lab.b(), before[1]);
  {
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), {})};
    for (End* end : {&ends.a, &ends.b}) {
      to_init(*end);
      const bool first = end == &ends.a;
      QpChange change = change_to_rtr(*end, first ? ends.b : ends.a);
      change.attr.ah_attr.grh.dgid = (first ? added_b : added_a).gid;
      change.attr.ah_attr.grh.sgid_index =
          static_cast<uint8_t>((first ? added_a : added_b).gid_index);
      must(change.apply(end->qp.get()), "ibv_modify_qp to RTR with the new GID");
      to_rts(*end);
    }
    expect_one_send(ends);
  }
  change("GID_DELETE");
  expect_at_both(lab, IBV_EVENT_GID_CHANGE);
  wait_for_gids(lab.a(), before[0].size());
  wait_for_gids(lab.b(), before[1].size());
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = lab.b().gid;
  attr.grh.sgid_index = static_cast<uint8_t>(added_a.gid_index);
  attr.grh.hop_limit = 64;
  attr.port_num = kPort;
  expect_refused(AhPtr(ibv_create_ah(lab.a().pd.get(), &attr)), {EINVAL},
                 "ibv_create_ah from a GID that is gone");
}

}  // namespace

std::span<const Row> port_rows() {
  static constexpr Row kRows[] = {
      {"port: goes down and comes back under a connection", down_and_up},
      {"port: is down for longer than retries last", down_for_long},
      {"port: a GID comes and goes", gid_comes_and_goes},
  };
  return kRows;
}

}  // namespace rocemu::e2e
