// The provider and the preload library as a verbs program meets them: through libibverbs.
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/unit/page.h"
#include "tests/unit/verbs_shim/fake_nic.h"
#include "tests/unit/verbs_shim/preloaded.h"

using rocemu::test::kPageBytes;

namespace {

__attribute__((constructor)) void start(int, char** argv, char**) {
  if (is_preloaded()) return;
  char directory[] = "/tmp/rocemu-unit-XXXXXX";
  if (mkdtemp(directory) == nullptr) _exit(2);
  setenv(ROCEMU_ENV_DIR, directory, 1);
  setenv("RDMAV_DRIVERS", ROCEMU_SHIM_DIR "/librocemu", 1);
  start_preloaded(argv);
}

// The state directory, for as long as the program runs.
struct NicDirectory {
  std::string path = getenv(ROCEMU_ENV_DIR);
  NicDirectory() { FakeNic::make_sysfs(path); }
  ~NicDirectory() { std::filesystem::remove_all(path); }
};
const NicDirectory nic_directory;

struct Program {
  FakeNic nic{nic_directory.path};
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;

  Program() {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    REQUIRE(count == 1);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    REQUIRE(context != nullptr);
    pd = ibv_alloc_pd(context);
    REQUIRE(pd != nullptr);
  }
  ~Program() { ibv_close_device(context); }

  ibv_cq* make_cq(int entries = 8, ibv_comp_channel* channel = nullptr) {
    ibv_cq* cq = ibv_create_cq(context, entries, nullptr, channel, 0);
    REQUIRE(cq != nullptr);
    return cq;
  }
  ibv_qp* make_qp(ibv_cq* cq) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {4, 4, 2, 2, 16};
    attr.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(pd, &attr);
    REQUIRE(qp != nullptr);
    CHECK(attr.cap.max_send_sge == 4);
    CHECK(attr.cap.max_inline_data == 64);
    return qp;
  }
  void move_to(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attr = {};
    attr.qp_state = state;
    REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    CHECK(qp->state == state);
  }
};

ibv_send_wr make_send(uint64_t wr_id, ibv_sge* sges = nullptr, int count = 0) {
  ibv_send_wr request = {};
  request.wr_id = wr_id;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = sges;
  request.num_sge = count;
  return request;
}

int post_one(ibv_qp* qp, ibv_send_wr request) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &request, &bad);
  CHECK((error == 0 || bad == &request));
  return error;
}

bool is_readable(int fd) {
  pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN) != 0;
}

}  // namespace

TEST_CASE("the device is found, opened and described") {
  Program program;
  CHECK(std::string(ibv_get_device_name(program.context->device)) == "rocemu0");
  CHECK(program.context->num_comp_vectors == 2);
  ibv_device_attr attr = {};
  REQUIRE(ibv_query_device(program.context, &attr) == 0);
  CHECK(std::string(attr.fw_ver) == "7.8.9");
  ibv_device_attr_ex extended = {};
  REQUIRE(ibv_query_device_ex(program.context, nullptr, &extended) == 0);
  CHECK(extended.orig_attr.max_cqe == 1024);
  CHECK(extended.phys_port_cnt_ex == 1);
  CHECK(extended.max_dm_size == 4096);
  CHECK(extended.odp_caps.general_caps == IBV_ODP_SUPPORT);
  ibv_port_attr port = {};
  REQUIRE(ibv_query_port(program.context, 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(ibv_query_port(program.context, 2, &port) == EINVAL);
}

TEST_CASE("memory is registered only where there is some, with rights that go together") {
  Program program;
  std::array<char, 100> buffer;
  ibv_mr* mr = ibv_reg_mr(program.pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(mr != nullptr);
  CHECK(mr->lkey != mr->rkey);
  CHECK(mr->length == buffer.size());
  CHECK(ibv_dereg_mr(mr) == 0);

  CHECK(ibv_reg_mr(program.pd, buffer.data(), 1, IBV_ACCESS_REMOTE_WRITE) == nullptr);
  CHECK(errno == EINVAL);
  void* hole = mmap(nullptr, 2 * kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(static_cast<char*>(hole) + kPageBytes, kPageBytes);
  CHECK(ibv_reg_mr(program.pd, hole, 2 * kPageBytes, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  CHECK(errno == EFAULT);
  munmap(hole, kPageBytes);
}

TEST_CASE("sends are posted in RTS, one doorbell for a list, and polled") {
  Program program;
  ibv_cq* cq = program.make_cq();
  ibv_qp* qp = program.make_qp(cq);
  CHECK(post_one(qp, make_send(1)) == EINVAL);
  program.move_to(qp, IBV_QPS_INIT);
  program.move_to(qp, IBV_QPS_RTR);
  CHECK(post_one(qp, make_send(1)) == EINVAL);
  program.move_to(qp, IBV_QPS_RTS);
  CHECK(program.nic.doorbells_rung() == 0);

  std::array<ibv_send_wr, 3> list = {make_send(10), make_send(11), make_send(12)};
  list[0].next = &list[1];
  list[1].next = &list[2];
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, list.data(), &bad) == 0);
  CHECK(program.nic.doorbells_rung() == 1);
  CHECK(post_one(qp, make_send(13)) == 0);
  CHECK(post_one(qp, make_send(14)) == ENOMEM);
  CHECK(program.nic.complete_sends() == 4);

  std::array<ibv_wc, 8> completions;
  REQUIRE(ibv_poll_cq(cq, 8, completions.data()) == 4);
  for (unsigned i = 0; i < 4; ++i) {
    CHECK(completions[i].wr_id == 10 + i);
    CHECK(completions[i].qp_num == qp->qp_num);
  }
  CHECK(ibv_poll_cq(cq, 8, completions.data()) == 0);
  CHECK(post_one(qp, make_send(15)) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE("a bad request stops the list, and what came before it is sent") {
  Program program;
  ibv_cq* cq = program.make_cq();
  ibv_qp* qp = program.make_qp(cq);
  program.move_to(qp, IBV_QPS_RTS);
  std::array<ibv_sge, 5> sges = {};
  std::array<ibv_send_wr, 2> list = {make_send(1), make_send(2, sges.data(), 5)};
  list[0].next = &list[1];
  ibv_send_wr* bad = nullptr;
  CHECK(ibv_post_send(qp, list.data(), &bad) == EINVAL);
  CHECK(bad == &list[1]);
  CHECK(program.nic.doorbells_rung() == 1);
  CHECK(program.nic.complete_sends() == 1);

  ibv_send_wr strange = make_send(3);
  strange.opcode = IBV_WR_BIND_MW;
  CHECK(post_one(qp, strange) == EINVAL);
  std::array<char, 65> text;
  text.fill('x');
  ibv_sge sge = {reinterpret_cast<uintptr_t>(text.data()), 65, 0};
  ibv_send_wr copied = make_send(4, &sge, 1);
  copied.send_flags |= IBV_SEND_INLINE;
  CHECK(post_one(qp, copied) == EINVAL);
  sge.length = 64;
  CHECK(post_one(qp, copied) == 0);
  CHECK(program.nic.complete_sends() == 1);
  CHECK(program.nic.inline_payload.at(0) == std::string(64, 'x'));
}

TEST_CASE("a few bytes of payload travel in the send queue, if they can be read") {
  Program program;
  ibv_qp* qp = program.make_qp(program.make_cq());
  program.move_to(qp, IBV_QPS_RTS);
  void* pages =
      mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  char* const text = static_cast<char*>(pages) + kPageBytes - 16;
  memcpy(text, "sixteen letters.", 16);
  REQUIRE(munmap(static_cast<char*>(pages) + kPageBytes, kPageBytes) == 0);
  const auto inlined = [&](const char* from, uint32_t bytes, ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(from), bytes, 5};
    ibv_send_wr request = make_send(1, &sge, 1);
    request.opcode = opcode;
    errno = 7;
    REQUIRE(post_one(qp, request) == 0);
    CHECK(errno == 7);
    REQUIRE(program.nic.complete_sends() == 1);
    const rocemu_send_wqe& wqe = program.nic.sent.back();
    return (wqe.flags & ROCEMU_SEND_INLINE_WQE_DATA) == 0
               ? std::string()
               : std::string(reinterpret_cast<const char*>(&wqe.compare_add), bytes);
  };
  CHECK(inlined(text, 16) == "sixteen letters.");
  CHECK(inlined(text + 15, 1, IBV_WR_RDMA_WRITE) == ".");
  CHECK(inlined(text, 8, IBV_WR_RDMA_READ).empty());
  CHECK(inlined(text - 1, 17).empty());
  CHECK(inlined(text + 1, 16).empty());  // ends in the page that has gone
  CHECK(inlined(text + 16, 8).empty());
  CHECK(inlined(nullptr, 8).empty());
  CHECK(inlined(reinterpret_cast<const char*>(UINTPTR_MAX - 3), 8).empty());
  munmap(pages, kPageBytes);
}

TEST_CASE("payload travels in the send queue where one request has it to itself") {
  Program program;
  ibv_qp* qp = program.make_qp(program.make_cq());
  program.move_to(qp, IBV_QPS_RTS);
  char text[] = "12345678";
  ibv_sge sge = {reinterpret_cast<uintptr_t>(text), 8, 5};
  ibv_send_wr requests[] = {make_send(1, &sge, 1), make_send(2, &sge, 1)};
  requests[0].next = &requests[1];
  const auto inlined = [&](size_t i) {
    return (program.nic.sent.at(i).flags & ROCEMU_SEND_INLINE_WQE_DATA) != 0;
  };
  REQUIRE(post_one(qp, requests[0]) == 0);
  REQUIRE(post_one(qp, requests[1]) == 0);
  REQUIRE(program.nic.complete_sends() == 3);
  CHECK(inlined(0));
  CHECK_FALSE(inlined(1));
  CHECK_FALSE(inlined(2));
  REQUIRE(post_one(qp, requests[1]) == 0);
  REQUIRE(program.nic.complete_sends() == 1);
  CHECK(inlined(3));
}

TEST_CASE("receives are taken from INIT on") {
  Program program;
  ibv_qp* qp = program.make_qp(program.make_cq());
  ibv_recv_wr request = {};
  ibv_recv_wr* bad = nullptr;
  CHECK(ibv_post_recv(qp, &request, &bad) == EINVAL);
  CHECK(bad == &request);
  program.move_to(qp, IBV_QPS_INIT);
  for (int i = 0; i < 4; ++i) CHECK(ibv_post_recv(qp, &request, &bad) == 0);
  CHECK(ibv_post_recv(qp, &request, &bad) == ENOMEM);
  CHECK(program.nic.doorbells_rung() == 0);
}

TEST_CASE("completions of a destroyed QP are never polled") {
  Program program;
  ibv_cq* cq = program.make_cq();
  ibv_qp* doomed = program.make_qp(cq);
  ibv_qp* other = program.make_qp(cq);
  for (ibv_qp* qp : {doomed, other}) {
    program.move_to(qp, IBV_QPS_RTS);
    REQUIRE(post_one(qp, make_send(qp->qp_num)) == 0);
  }
  CHECK(program.nic.complete_sends() == 2);
  const uint32_t expected = other->qp_num;
  REQUIRE(ibv_destroy_qp(doomed) == 0);
  std::array<ibv_wc, 2> completions;
  CHECK(ibv_poll_cq(cq, 2, completions.data()) == 1);
  CHECK(completions[0].qp_num == expected);
  program.move_to(other, IBV_QPS_RTS);
  REQUIRE(post_one(other, make_send(1)) == 0);
  CHECK(program.nic.complete_sends() == 1);
  program.move_to(other, IBV_QPS_RESET);
  CHECK(ibv_poll_cq(cq, 2, completions.data()) == 0);
}

TEST_CASE("a QP is reset while another thread posts to it within a batch of completions") {
  Program program;
  ibv_cq_init_attr_ex cq_attr = {};
  cq_attr.cqe = 4;
  cq_attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(program.context, &cq_attr);
  REQUIRE(cq != nullptr);
  ibv_qp* qp = program.make_qp(ibv_cq_ex_to_cq(cq));
  program.move_to(qp, IBV_QPS_RTS);
  REQUIRE(post_one(qp, make_send(1)) == 0);
  REQUIRE(program.nic.complete_sends() == 1);
  ibv_poll_cq_attr poll_attr = {};
  REQUIRE(ibv_start_poll(cq, &poll_attr) == 0);
  const unsigned before = program.nic.requests(ROCEMU_OP_MODIFY_QP);
  std::thread resetter([qp] {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RESET;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  });
  while (program.nic.requests(ROCEMU_OP_MODIFY_QP) == before) std::this_thread::yield();
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad = nullptr;
  CHECK(ibv_post_recv(qp, &receive, &bad) == EINVAL);
  ibv_end_poll(cq);
  resetter.join();
  CHECK(qp->state == IBV_QPS_RESET);
}

TEST_CASE("the extended CQ and the extended QP") {
  Program program;
  ibv_cq_init_attr_ex cq_attr = {};
  cq_attr.cqe = 4;
  cq_attr.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  ibv_cq_ex* cq = ibv_create_cq_ex(program.context, &cq_attr);
  REQUIRE(cq != nullptr);
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
  attr.cap = {4, 1, 4, 1, 64};
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = program.pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
  ibv_qp* qp = ibv_create_qp_ex(program.context, &attr);
  REQUIRE(qp != nullptr);
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  REQUIRE(extended != nullptr);
  program.move_to(qp, IBV_QPS_RTS);

  ibv_wr_start(extended);
  extended->wr_id = 5;
  extended->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(extended, 0xabc, 0x1000);
  ibv_wr_set_sge(extended, 0xdef, 0x2000, 300);
  extended->wr_id = 6;
  ibv_wr_send(extended);
  char text[] = "inline";
  ibv_wr_set_inline_data(extended, text, 6);
  CHECK(ibv_wr_complete(extended) == 0);
  REQUIRE(program.nic.complete_sends() == 2);
  CHECK(program.nic.sent[0].opcode == IBV_WR_RDMA_WRITE);
  CHECK(program.nic.sent[0].rkey == 0xabc);
  CHECK(program.nic.sent[0].remote_address == 0x1000);
  CHECK(program.nic.sent[0].num_sge == 1);
  CHECK(program.nic.inline_payload.at(0) == "inline");

  ibv_poll_cq_attr poll_attr = {};
  REQUIRE(ibv_start_poll(cq, &poll_attr) == 0);
  CHECK(cq->wr_id == 5);
  CHECK(ibv_wc_read_byte_len(cq) == 77);
  CHECK(ibv_wc_read_completion_ts(cq) == 123456789);
  REQUIRE(ibv_next_poll(cq) == 0);
  CHECK(cq->wr_id == 6);
  CHECK(ibv_next_poll(cq) == ENOENT);
  ibv_end_poll(cq);
  CHECK(ibv_start_poll(cq, &poll_attr) == ENOENT);

  SECTION("an error takes the whole batch back") {
    ibv_wr_start(extended);
    for (int i = 0; i < 5; ++i) ibv_wr_send(extended);
    CHECK(ibv_wr_complete(extended) == ENOMEM);
    CHECK(program.nic.complete_sends() == 0);
  }
  SECTION("an aborted batch was never there") {
    ibv_wr_start(extended);
    ibv_wr_send(extended);
    ibv_wr_abort(extended);
    CHECK(program.nic.complete_sends() == 0);
  }
}

TEST_CASE("completion events arrive, and those of a destroyed CQ don't") {
  Program program;
  ibv_comp_channel* channel = ibv_create_comp_channel(program.context);
  REQUIRE(channel != nullptr);
  CHECK((fcntl(channel->fd, F_GETFD) & FD_CLOEXEC) != 0);
  ibv_cq* cqs[] = {program.make_cq(8, channel), program.make_cq(8, channel)};
  ibv_qp* qps[] = {program.make_qp(cqs[0]), program.make_qp(cqs[1])};
  for (int i : {0, 1}) {
    program.move_to(qps[i], IBV_QPS_RTS);
    REQUIRE(ibv_req_notify_cq(cqs[i], 0) == 0);
    REQUIRE(post_one(qps[i], make_send(1)) == 0);
  }
  CHECK_FALSE(is_readable(channel->fd));
  CHECK(program.nic.complete_sends() == 2);
  CHECK(is_readable(channel->fd));

  REQUIRE(ibv_destroy_qp(qps[0]) == 0);
  REQUIRE(ibv_destroy_cq(cqs[0]) == 0);
  ibv_cq* about = nullptr;
  void* cq_context = nullptr;
  REQUIRE(ibv_get_cq_event(channel, &about, &cq_context) == 0);
  CHECK(about == cqs[1]);
  CHECK_FALSE(is_readable(channel->fd));

  // An event that was read must be acknowledged before the CQ can go.
  REQUIRE(ibv_destroy_qp(qps[1]) == 0);
  std::atomic<bool> acknowledged{false};
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    acknowledged = true;
    ibv_ack_cq_events(about, 1);
  });
  CHECK(ibv_destroy_cq(cqs[1]) == 0);
  CHECK(acknowledged);
  reader.join();

  CHECK(ibv_destroy_comp_channel(channel) == 0);
  CHECK(program.nic.requests(ROCEMU_OP_DESTROY_CHANNEL) == 1);
}

TEST_CASE("asynchronous events arrive, and those of a destroyed QP don't") {
  Program program;
  ibv_cq* cq = program.make_cq();
  ibv_qp* qps[] = {program.make_qp(cq), program.make_qp(cq)};
  for (ibv_qp* qp : qps) {
    program.nic.send_async(reinterpret_cast<uintptr_t>(qp), IBV_EVENT_QP_FATAL);
  }
  REQUIRE(ibv_destroy_qp(qps[0]) == 0);
  ibv_async_event event = {};
  REQUIRE(ibv_get_async_event(program.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == qps[1]);
  ibv_ack_async_event(&event);
  CHECK_FALSE(is_readable(program.context->async_fd));
  CHECK(ibv_destroy_qp(qps[1]) == 0);
}

TEST_CASE("when the NIC dies, nothing hangs") {
  Program program;
  ibv_comp_channel* channel = ibv_create_comp_channel(program.context);
  ibv_cq* cq = program.make_cq(8, channel);
  program.nic.die();
  ibv_cq* about = nullptr;
  void* cq_context = nullptr;
  CHECK(ibv_get_cq_event(channel, &about, &cq_context) == -1);
  ibv_wc completion;
  int polls = 0;
  while (ibv_poll_cq(cq, 1, &completion) == 0 && polls < 100000) ++polls;
  CHECK(ibv_poll_cq(cq, 1, &completion) < 0);
  CHECK(ibv_alloc_pd(program.context) == nullptr);
  CHECK(errno == EIO);
  ibv_async_event event = {};
  REQUIRE(ibv_get_async_event(program.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
}

TEST_CASE("who waits for asynchronous events when the NIC dies hears of its end, once") {
  Program program;
  std::thread death([&] { program.nic.die(); });
  ibv_async_event event = {};
  CHECK(ibv_get_async_event(program.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  death.join();
  CHECK(ibv_get_async_event(program.context, &event) == -1);
  CHECK(errno == EIO);
  CHECK(ibv_alloc_pd(program.context) == nullptr);
  CHECK(ibv_get_async_event(program.context, &event) == -1);
}

TEST_CASE("a forked child has its parent's NIC, but registers no memory of its own") {
  Program program;
  ibv_comp_channel* channel = ibv_create_comp_channel(program.context);
  REQUIRE(channel != nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool made = ibv_alloc_pd(program.context) != nullptr;
    static char bytes[64];
    const bool refused = ibv_reg_mr(program.pd, bytes, sizeof(bytes), 0) == nullptr && errno == EIO;
    close(channel->fd);
    _exit(made && refused ? 0 : 1);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  CHECK(status == 0);
  CHECK(program.nic.requests(ROCEMU_OP_DESTROY_CHANNEL) == 0);
  CHECK(ibv_dealloc_pd(program.pd) == 0);
}
