#include "tests/e2e/tools/lab.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rocemu::e2e {

namespace {

constexpr int kEventPatienceMs = 10000;

void make_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) fail_errno(errno, "fcntl");
}

// The next event, acknowledged; nothing when none comes in time.
std::optional<ibv_async_event> next_event(const Device& device, int patience_ms) {
  pollfd fd{device.context->async_fd, POLLIN, 0};
  if (poll(&fd, 1, patience_ms) <= 0) return std::nullopt;
  ibv_async_event event{};
  if (ibv_get_async_event(device.context.get(), &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event;
}

// Communication established is sent at the provider's discretion when data outruns RTS.
template <typename Matches>
void expect_event(const Device& device, const char* name, Matches matches) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(kEventPatienceMs);
  while (Clock::now() < deadline) {
    const auto event = next_event(device, kEventPatienceMs);
    if (!event) break;
    if (matches(*event)) return;
    if (event->event_type != IBV_EVENT_COMM_EST) {
      fail("async event '%s' where '%s' is due", ibv_event_type_str(event->event_type), name);
    }
  }
  fail("no async event '%s'", name);
}

std::string errno_list(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : " or ") + errno_text(value);
  return text;
}

void fill(const LinkEnd& end, std::byte value) {
  std::memset(end.memory.data(), std::to_integer<int>(value), end.memory.bytes());
}

}  // namespace

ibv_sge LinkEnd::sge(size_t offset, uint32_t bytes) const {
  return {memory.address() + offset, bytes, mr->lkey};
}

SendRequest::SendRequest(ibv_wr_opcode opcode, uint64_t wr_id, const ibv_sge& payload)
    : sge(payload) {
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
}

SendRequest& SendRequest::remote(uint64_t address, uint32_t rkey) {
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return *this;
}

Lab::Lab(Device a, Device b) : a_(std::move(a)), b_(std::move(b)) {
  make_nonblocking(a_.context->async_fd);
  make_nonblocking(b_.context->async_fd);
  standing_.emplace(make_link());
}

LinkEnd Lab::make_end(const Device& device, const LinkOptions& options) const {
  LinkEnd end{&device, Memory(options.memory_bytes), {}, {}, {}, {}, {}};
  end.mr = register_memory(device.pd.get(), end.memory.data(), end.memory.bytes(),
                           options.memory_access);
  must(end.mr.get(), "ibv_reg_mr");
  ibv_context* context = device.context.get();
  end.send_cq.reset(
      must(ibv_create_cq(context, options.cqe, nullptr, nullptr, 0), "ibv_create_cq"));
  end.recv_cq.reset(
      must(ibv_create_cq(context, options.cqe, nullptr, nullptr, 0), "ibv_create_cq"));
  ibv_qp_init_attr init{};
  init.send_cq = end.send_cq.get();
  init.recv_cq = end.recv_cq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = options.max_send_wr;
  init.cap.max_recv_wr = options.max_recv_wr;
  init.cap.max_send_sge = options.max_send_sge;
  init.cap.max_recv_sge = options.max_recv_sge;
  init.cap.max_inline_data = options.max_inline_bytes;
  end.qp.reset(must(ibv_create_qp(device.pd.get(), &init), "ibv_create_qp"));
  end.cap = init.cap;
  return end;
}

Link Lab::make_link(const LinkOptions& options) const {
  Link link{make_end(a_, options), make_end(b_, options)};
  if (options.connected) {
    connect_pair(link.a.qp.get(), a_, link.b.qp.get(), b_, options.rc);
  }
  return link;
}

void Lab::check_standing_link() {
  const auto sent = static_cast<std::byte>(++checks_ % 255 + 1);
  const auto bytes = static_cast<uint32_t>(standing_->a.memory.bytes() / 2);
  LinkEnd& a = standing_->a;
  LinkEnd& b = standing_->b;
  const auto check = [&](const LinkEnd& target, const char* what) {
    expect_bytes({target.memory.data(), bytes}, sent, what);
    expect_bytes({target.memory.data() + bytes, target.memory.bytes() - bytes}, std::byte{0},
                 "what lies behind the target");
  };
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    const bool reads = opcode == IBV_WR_RDMA_READ;
    fill(reads ? b : a, sent);
    fill(reads ? a : b, std::byte{0});
    if (opcode == IBV_WR_SEND) post_recv_ok(b.qp.get(), 100, b.sge(0, bytes));
    SendRequest request(opcode, 101, a.sge(0, bytes));
    post_ok(a.qp.get(), request.remote(b.memory.address(), b.mr->rkey));
    expect_completion(a.send_cq.get(), 101, {IBV_WC_SUCCESS});
    if (opcode == IBV_WR_SEND) expect_completion(b.recv_cq.get(), 100, {IBV_WC_SUCCESS});
    check(reads ? a : b, "the standing pair's target");
  }
}

void Lab::check_no_events(std::chrono::milliseconds patience) {
  for (const Device* device : {&a_, &b_}) {
    if (const auto event = next_event(*device, static_cast<int>(patience.count()))) {
      fail("async event '%s' where none is due", ibv_event_type_str(event->event_type));
    }
  }
}

int post_send(ibv_qp* qp, ibv_send_wr& wr, ibv_send_wr** bad) {
  ibv_send_wr* ignored = nullptr;
  return ibv_post_send(qp, &wr, bad != nullptr ? bad : &ignored);
}

int post_recv(ibv_qp* qp, uint64_t wr_id, std::span<ibv_sge> sges, ibv_recv_wr** bad) {
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* at = nullptr;
  const int rc = ibv_post_recv(qp, &wr, &at);
  if (rc != 0 && at != &wr) fail("ibv_post_recv failed, but bad_wr is not the request that failed");
  if (bad != nullptr) *bad = at;
  return rc;
}

void post_ok(ibv_qp* qp, SendRequest& request) { must(post_send(qp, request.wr), "ibv_post_send"); }

void post_recv_ok(ibv_qp* qp, uint64_t wr_id, ibv_sge sge) {
  must(post_recv(qp, wr_id, {&sge, 1}), "ibv_post_recv");
}

ibv_wc expect_completion(ibv_cq* cq, uint64_t wr_id,
                         std::initializer_list<ibv_wc_status> statuses) {
  std::string due;
  for (const ibv_wc_status status : statuses) {
    due += (due.empty() ? "" : " or ") + std::string(ibv_wc_status_str(status));
  }
  const auto wc = poll_one(cq, kPatience);
  if (!wc) fail("no completion, due is %s", due.c_str());
  if (std::find(statuses.begin(), statuses.end(), wc->status) == statuses.end() ||
      wc->wr_id != wr_id) {
    fail("completion %s; due is %s of wr_id %#llx", wc_text(*wc).c_str(), due.c_str(),
         static_cast<unsigned long long>(wr_id));
  }
  return *wc;
}

void expect_flushed(ibv_cq* cq, std::initializer_list<uint64_t> wr_ids) {
  for (const uint64_t wr_id : wr_ids) expect_completion(cq, wr_id, {IBV_WC_WR_FLUSH_ERR});
  expect_no_completion(cq);
}

void expect_no_completion(ibv_cq* cq) {
  if (const auto wc = poll_one(cq, std::chrono::milliseconds(20))) {
    fail("a completion where none is due: %s", wc_text(*wc).c_str());
  }
}

void expect_state(ibv_qp* qp, ibv_qp_state state) {
  const ibv_qp_state is = query_state(qp);
  if (is != state) fail("the QP is in state %d, must be in %d", is, state);
}

void expect_errno(int errno_value, std::initializer_list<int> allowed, const char* what) {
  if (std::find(allowed.begin(), allowed.end(), errno_value) != allowed.end()) return;
  fail("%s: %s, must be %s", what, errno_text(errno_value).c_str(), errno_list(allowed).c_str());
}

void expect_bytes(std::span<const std::byte> bytes, std::byte value, const char* what) {
  const auto wrong =
      std::find_if(bytes.begin(), bytes.end(), [value](std::byte b) { return b != value; });
  if (wrong == bytes.end()) return;
  fail("%s: byte %td is %#04x, must be %#04x", what, wrong - bytes.begin(),
       std::to_integer<unsigned>(*wrong), std::to_integer<unsigned>(value));
}

void expect_qp_event(const Device& device, ibv_qp* qp, ibv_event_type type) {
  expect_event(device, ibv_event_type_str(type), [qp, type](const ibv_async_event& event) {
    return event.event_type == type && event.element.qp == qp;
  });
}

void expect_srq_event(const Device& device, ibv_srq* srq, ibv_event_type type) {
  expect_event(device, ibv_event_type_str(type), [srq, type](const ibv_async_event& event) {
    return event.event_type == type && event.element.srq == srq;
  });
}

void expect_cq_event(const Device& device, ibv_cq* cq, ibv_event_type type) {
  expect_event(device, ibv_event_type_str(type), [cq, type](const ibv_async_event& event) {
    return event.event_type == type && event.element.cq == cq;
  });
}

}  // namespace rocemu::e2e
