#include "tests/e2e/verbs/ends.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <cstring>

namespace rocemu::e2e {

uint64_t End::word(size_t offset) const {
  uint64_t value;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

void End::set_word(size_t offset, uint64_t value) const {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

void wait_for_word(const End& end, size_t offset, uint64_t value) {
  const auto deadline = Clock::now() + kPatience;
  while (end.word(offset) != value) {
    if (Clock::now() > deadline) fail("what was written does not arrive");
    sched_yield();
  }
}

void End::fill(std::byte value) const {
  std::memset(memory.data(), std::to_integer<int>(value), memory.bytes());
}

End make_end(const Device& device, const EndOptions& options) {
  End end{&device, options, Memory(65536), {}, {}, {}, {}, {}};
  ibv_pd* const pd = options.pd != nullptr ? options.pd : device.pd.get();
  end.mr = register_memory(pd, end.memory.data(), end.memory.bytes(), kEveryRight);
  must(end.mr.get(), "ibv_reg_mr");
  ibv_context* context = device.context.get();
  if (options.with_channel)
    end.channel.reset(must(ibv_create_comp_channel(context), "ibv_create_comp_channel"));
  const auto use = [&](ibv_cq* given, CqPtr& own) {
    if (given != nullptr) return given;
    own.reset(must(ibv_create_cq(context, 64, nullptr, end.channel.get(), 0), "ibv_create_cq"));
    return own.get();
  };

  ibv_qp_init_attr_ex init{};
  init.qp_context = end.memory.data();
  init.qp_type = options.type;
  init.send_cq = use(options.send_cq, end.send_cq);
  init.recv_cq = use(options.recv_cq, end.recv_cq);
  init.srq = options.srq;
  init.cap = {options.max_send_wr, 16, 2, 2, options.max_inline_bytes};
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pd;
  if (options.type == IBV_QPT_XRC_RECV) {
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = options.xrcd;
    init.cap = {};
  }
  if (options.type == IBV_QPT_XRC_SEND) init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
  if (options.send_ops != 0) {
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = options.send_ops;
  }
  if (options.max_tso_header != 0) {
    init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    init.max_tso_header = options.max_tso_header;
  }
  end.qp.reset(ibv_create_qp_ex(context, &init));
  if (!end.qp && errno == EOPNOTSUPP) throw Skipped("the device has no such QP");
  must(end.qp.get(), "ibv_create_qp_ex");
  return end;
}

namespace {

// Attributes that are of RC's two halves alone (ibv_modify_qp(3)).
constexpr int kOfResponders = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kOfRequesters = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

bool responds(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV; }
bool requests(ibv_qp_type type) { return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND; }

}  // namespace

QpChange change_to_init(const End& end) {
  QpChange change = change_to_init(end.options.rc);
  if (end.options.type == IBV_QPT_UD) {
    change.mask = (change.mask & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY;
    change.attr.qkey = end.options.qkey;
  }
  return change;
}

QpChange change_to_rtr(const End& end, const End& peer) {
  QpChange change = change_to_rtr(end.options.rc, *end.device, peer.device->gid,
                                  peer.device->port.lid, peer.qp->qp_num);
  if (!responds(end.options.type)) change.mask &= ~kOfResponders;
  if (end.options.type == IBV_QPT_UD) change.mask = IBV_QP_STATE;
  return change;
}

QpChange change_to_rts(const End& end) {
  QpChange change = change_to_rts(end.options.rc);
  if (!requests(end.options.type)) change.mask &= ~kOfRequesters;
  if (!requests(end.options.type) && !responds(end.options.type)) change.mask &= ~IBV_QP_TIMEOUT;
  return change;
}

void to_init(End& end) { must(change_to_init(end).apply(end.qp.get()), "ibv_modify_qp to INIT"); }

void to_rtr(End& end, const End& peer) {
  must(change_to_rtr(end, peer).apply(end.qp.get()), "ibv_modify_qp to RTR");
}

void to_rts(End& end) { must(change_to_rts(end).apply(end.qp.get()), "ibv_modify_qp to RTS"); }

void connect(End& a, End& b) {
  for (End* end : {&a, &b}) {
    to_init(*end);
    to_rtr(*end, end == &a ? b : a);
    to_rts(*end);
  }
}

Ends make_ends(Lab& lab, const EndOptions& options) {
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), options)};
  connect(ends.a, ends.b);
  return ends;
}

AhPtr make_ah(const Device& own, const ibv_gid& to) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = to;
  attr.grh.sgid_index = own.gid_index;
  attr.grh.hop_limit = 64;
  attr.port_num = kPort;
  return AhPtr(must(ibv_create_ah(own.pd.get(), &attr), "ibv_create_ah"));
}

SrqPtr make_srq(const Device& device, uint32_t max_wr) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = 1;
  SrqPtr srq(ibv_create_srq(device.pd.get(), &init));
  if (!srq && errno == EOPNOTSUPP) throw Skipped("the device has no SRQs");
  must(srq.get(), "ibv_create_srq");
  return srq;
}

XrcdPtr make_xrcd(const Device& device) {
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = -1;
  init.oflags = O_CREAT;
  XrcdPtr xrcd(ibv_open_xrcd(device.context.get(), &init));
  if (!xrcd && errno == EOPNOTSUPP) throw Skipped("the device has no XRC");
  must(xrcd.get(), "ibv_open_xrcd");
  return xrcd;
}

void set_limit(ibv_srq* srq, uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  must(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq with IBV_SRQ_LIMIT");
}

void post_srq_recv_ok(ibv_srq* srq, uint64_t wr_id, ibv_sge sge) {
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  must(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

void address(SendRequest& request, ibv_ah* ah, const End& to, uint32_t qkey) {
  request.wr.wr.ud.ah = ah;
  request.wr.wr.ud.remote_qpn = to.qp->qp_num;
  request.wr.wr.ud.remote_qkey = qkey;
}

void post(End& from, ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge local, const End& to,
          size_t remote_offset, unsigned more_flags) {
  SendRequest request(opcode, wr_id, local);
  request.remote(to.memory.address() + remote_offset, to.mr->rkey);
  request.wr.send_flags |= more_flags;
  post_ok(from.qp.get(), request);
}

void post_atomic(End& from, ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge local, uint64_t address,
                 uint32_t rkey, uint64_t compare_add, uint64_t swap) {
  SendRequest request(opcode, wr_id, local);
  request.wr.wr.atomic.remote_addr = address;
  request.wr.wr.atomic.rkey = rkey;
  request.wr.wr.atomic.compare_add = compare_add;
  request.wr.wr.atomic.swap = swap;
  post_ok(from.qp.get(), request);
}

bool post_wrong(End& from, SendRequest& wrong) {
  ibv_send_wr behind = wrong.wr;
  behind.wr_id = wrong.wr.wr_id + 1;
  wrong.wr.next = &behind;
  ibv_send_wr* bad = nullptr;
  const int error = post_send(from.qp.get(), wrong.wr, &bad);
  wrong.wr.next = nullptr;
  expect_errno(error, {0, EINVAL}, "ibv_post_send");
  if (error != 0 && bad != &wrong.wr) fail("bad_wr is not the request that failed");
  return error == 0;
}

void expect_send_queue_error(End& from, SendRequest& wrong, ibv_wc_status status) {
  if (!post_wrong(from, wrong)) return;
  expect_completion(from.send_cq.get(), wrong.wr.wr_id, {status});
  expect_flushed(from.send_cq.get(), {wrong.wr.wr_id + 1});
  expect_state(from.qp.get(), IBV_QPS_SQE);
  must(change_to(IBV_QPS_RTS).apply(from.qp.get()), "ibv_modify_qp from SQE to RTS");
}

void expect_as_created(const End& end, const ibv_qp_attr& attr, const ibv_qp_init_attr& init) {
  if (init.qp_context != end.memory.data()) fail("qp_context is another");
  if (init.send_cq != end.send_cq.get() || init.recv_cq != end.recv_cq.get())
    fail("the CQs are not those of the creation");
  if (init.srq != end.options.srq) fail("the SRQ is not that of the creation");
  expect_equal(init.qp_type, end.options.type, "qp_type");
  expect_equal(static_cast<uint64_t>(init.sq_sig_all), 0, "sq_sig_all");
  for (const ibv_qp_cap& cap : {attr.cap, init.cap})
    if (cap.max_send_wr < 16 || cap.max_recv_wr < 16 || cap.max_send_sge < 2 ||
        cap.max_recv_sge < 2 || cap.max_inline_data < end.options.max_inline_bytes)
      fail("the capabilities are less than asked for");
  if (std::memcmp(&attr.cap, &init.cap, sizeof attr.cap) != 0)
    fail("the capabilities differ between the attributes and those of the creation");
}

namespace {

bool readable(int fd, int patience_ms) {
  pollfd waits{fd, POLLIN, 0};
  return poll(&waits, 1, patience_ms) > 0;
}

}  // namespace

void expect_completion_event(ibv_comp_channel* channel, ibv_cq* cq) {
  if (!readable(channel->fd, static_cast<int>(kPatience.count()))) fail("no completion event");
  ibv_cq* of = nullptr;
  void* context = nullptr;
  must(ibv_get_cq_event(channel, &of, &context), "ibv_get_cq_event");
  ibv_ack_cq_events(of, 1);
  if (of != cq) fail("a completion event of another CQ");
}

void expect_no_completion_event(End& end) {
  if (readable(end.channel->fd, 20)) fail("a completion event where none is due");
}

bool has_completion_event(const End& end) { return readable(end.channel->fd, 0); }

// As where the kernel closes the channel of a device that goes; errno says so, whatever it was.
void expect_end_of_events(const End& end) {
  pollfd waits{end.channel->fd, POLLIN, 0};
  if (poll(&waits, 1, static_cast<int>(kPatience.count())) <= 0) fail("the channel is silent");
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  errno = EAGAIN;
  if (ibv_get_cq_event(end.channel.get(), &cq, &context) == 0)
    fail("an event of a device that is gone");
  expect_errno(errno, {EIO}, "ibv_get_cq_event");
}

void expect_equal(uint64_t is, uint64_t due, const char* what) {
  if (is != due)
    fail("%s is %#llx, must be %#llx", what, static_cast<unsigned long long>(is),
         static_cast<unsigned long long>(due));
}

}  // namespace rocemu::e2e
