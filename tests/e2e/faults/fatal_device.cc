// fatal_device DEVICE GID_INDEX: the device is lost for a while (`rocemu fault DEVICE
// device-fatal`). What was under way is flushed, programs hear IBV_EVENT_DEVICE_FATAL, their calls
// fail but for those that give something up, nobody can open it; and when it is back, new contexts
// work.
#include <poll.h>

#include <cstdio>
#include <cstdlib>

#include "tests/e2e/faults/asked_fault.h"
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

void expect_event(const Device& device, ibv_event_type type) {
  pollfd waits{device.context->async_fd, POLLIN, 0};
  if (poll(&waits, 1, static_cast<int>(kPatience.count())) <= 0)
    fail("no event '%s'", ibv_event_type_str(type));
  ibv_async_event event;
  must(ibv_get_async_event(device.context.get(), &event), "ibv_get_async_event");
  ibv_ack_async_event(&event);
  if (event.event_type == IBV_EVENT_PORT_ERR) return expect_event(device, type);
  if (event.event_type != type) fail("event '%s'", ibv_event_type_str(event.event_type));
}

void expect_lost(Device& device, End& end) {
  ibv_context* const context = device.context.get();
  ibv_device_attr attr;
  expect_errno(ibv_query_device(context, &attr), {EIO}, "ibv_query_device");
  expect_refused(PdPtr(ibv_alloc_pd(context)), {EIO}, "ibv_alloc_pd");
  expect_refused(register_memory(device.pd.get(), end.memory.data(), 64, 0), {EIO}, "ibv_reg_mr");
  expect_errno(change_to(IBV_QPS_RESET).apply(end.qp.get()), {EIO}, "ibv_modify_qp");
}

void run(const char* name, int gid_index) {
  {
    Device a = open_device(name, gid_index);
    Device b = open_device(name, gid_index);
    EndOptions options;
    options.with_channel = true;
    Ends ends{make_end(a, options), make_end(b, options)};
    connect(ends.a, ends.b);
    post(ends.a, IBV_WR_SEND, 1, ends.a.sge(0, 100), ends.b);
    post_recv_ok(ends.a.qp.get(), 2, ends.a.sge(0, 100));
    must(ibv_req_notify_cq(ends.a.recv_cq.get(), 0), "ibv_req_notify_cq");
    AskedFault fault(std::string(name) + " device-fatal");
    expect_event(a, IBV_EVENT_DEVICE_FATAL);
    expect_event(b, IBV_EVENT_DEVICE_FATAL);
    expect_completion_event(ends.a, ends.a.recv_cq.get());
    expect_end_of_events(ends.a);
    expect_end_of_events(ends.b);
    expect_flushed(ends.a.send_cq.get(), {1});
    expect_flushed(ends.a.recv_cq.get(), {2});
    expect_lost(a, ends.a);
    expect_refused(ContextPtr(ibv_open_device(a.context->device)), {ENODEV}, "ibv_open_device");
    fault.clear();
    expect_lost(a, ends.a);
    // Everything can be given up: the owners of what is here say so at the end.
  }
  Lab lab(open_device(name, gid_index), open_device(name, gid_index));
  lab.check_standing_link();
  if (destroy_failures() != 0) fail("%d objects could not be destroyed", destroy_failures());
  std::puts("fatal_device: as it must be");
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "%s DEVICE GID_INDEX\n", argv[0]);
    return 2;
  }
  try {
    rocemu::e2e::run(argv[1], std::atoi(argv[2]));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
  }
  return 1;
}
