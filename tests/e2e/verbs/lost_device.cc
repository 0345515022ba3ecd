// lost_device DEVICE GID_INDEX COMMAND: has work under way on the device, runs the command, which
// ends the device, and checks what a program sees then: IBV_EVENT_DEVICE_FATAL, calls that fail and
// do not wait, and objects that it can give up. Exits 0 when all of it was so.
#include <poll.h>

#include <cstdio>
#include <cstdlib>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// A program that waits for events is told.
void expect_fatal(const Device& device) {
  pollfd waits{device.context->async_fd, POLLIN, 0};
  if (poll(&waits, 1, static_cast<int>(kPatience.count())) <= 0) fail("no event");
  ibv_async_event event;
  must(ibv_get_async_event(device.context.get(), &event), "ibv_get_async_event");
  ibv_ack_async_event(&event);
  if (event.event_type != IBV_EVENT_DEVICE_FATAL)
    fail("event '%s' instead of the device's end", ibv_event_type_str(event.event_type));
}

// A program that polls sees its polls fail, and finds the event.
void poll_until_it_fails(ibv_cq* cq) {
  const auto deadline = Clock::now() + kPatience;
  ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) >= 0) {
    if (Clock::now() > deadline) fail("polling goes on for ever");
  }
}

void expect_lost(int error, const char* what) { expect_errno(error, {EIO, ENODEV}, what); }

// 0 or EIO, as of a driver that is gone; the object is given up either way.
template <typename Owner, typename Destroy>
void give_up(Owner& owner, Destroy destroy, const char* what) {
  expect_errno(destroy(owner.release()), {0, EIO}, what);
}

void run(const char* name, int gid_index, const char* command) {
  Lab lab(open_device(name, gid_index), open_device(name, gid_index));
  EndOptions options;
  options.with_channel = true;
  Ends ends = make_ends(lab, options);
  post_recv_ok(ends.a.qp.get(), 1, ends.a.sge(0, 100));
  if (const int code = std::system(command); code != 0) fail("the command ended with %d", code);

  expect_fatal(lab.a());
  expect_end_of_events(ends.a);
  poll_until_it_fails(ends.b.recv_cq.get());
  expect_fatal(lab.b());
  ibv_context* context = lab.a().context.get();
  ibv_device_attr attr;
  ibv_port_attr port;
  expect_lost(ibv_query_device(context, &attr), "ibv_query_device");
  expect_lost(ibv_query_port(context, kPort, &port), "ibv_query_port");
  expect_lost(PdPtr(ibv_alloc_pd(context)) ? 0 : errno, "ibv_alloc_pd");
  expect_lost(register_memory(lab.a().pd.get(), ends.a.memory.data(), 64, 0) ? 0 : errno,
              "ibv_reg_mr");
  expect_lost(change_to(IBV_QPS_ERR).apply(ends.a.qp.get()), "ibv_modify_qp");
  for (End* end : {&ends.a, &ends.b}) {
    give_up(end->qp, ibv_destroy_qp, "ibv_destroy_qp");
    give_up(end->send_cq, ibv_destroy_cq, "ibv_destroy_cq");
    give_up(end->recv_cq, ibv_destroy_cq, "ibv_destroy_cq");
    give_up(end->mr, ibv_dereg_mr, "ibv_dereg_mr");
  }
  std::puts("lost_device: as it must be");
  std::fflush(stdout);
  // The laboratory holds more of the device, which it could not destroy without complaint.
  std::_Exit(0);
}

}  // namespace
}  // namespace rocemu::e2e

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "%s DEVICE GID_INDEX COMMAND\n", argv[0]);
    return 2;
  }
  try {
    rocemu::e2e::run(argv[1], std::atoi(argv[2]), argv[3]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAIL %s\n", failure.what());
  }
  return 1;
}
