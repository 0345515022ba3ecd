// Rows of bad input about peers that do not answer, about the limits a device states, and about
// objects that are in use.
#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

// ---- no answer ----

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// IBTA vol. 1, 9.7.6.1.3: the timer may run from once to four times 4.096 us * 2^timeout, and
// retry_cnt retries follow the first try. What a busy machine adds comes on top.
void expect_retries_to_run_out(ibv_qp* qp, const LinkEnd& end, const RcOptions& rc) {
  const double timer_ms = 4.096e-3 * static_cast<double>(1u << rc.timeout);
  const double least_ms = timer_ms * (rc.retry_cnt + 1);
  const double most_ms = 4 * least_ms + 1000;
  const auto start = Clock::now();
  SendRequest request(IBV_WR_SEND, 1, end.sge(0, 8));
  post_ok(qp, request);
  SendRequest behind(IBV_WR_SEND, 2, end.sge(0, 8));
  post_ok(qp, behind);
  expect_completion(end.send_cq.get(), 1, {IBV_WC_RETRY_EXC_ERR});
  const double took_ms = milliseconds_since(start);
  expect_flushed(end.send_cq.get(), {2});
  expect_state(qp, IBV_QPS_ERR);
  if (took_ms < least_ms * 0.99 || took_ms > most_ms) {
    fail("retries ran out after %.1f ms, must be %.1f to %.1f", took_ms, least_ms, most_ms);
  }
}

void nobody_with_that_qpn(Lab& lab) {
  LinkOptions options;
  options.connected = false;
  for (const auto& [timeout, retry_cnt] : {std::pair{14, 2}, {12, 7}, {16, 0}}) {
    Link link = lab.make_link(options);
    RcOptions rc;
    rc.timeout = static_cast<uint8_t>(timeout);
    rc.retry_cnt = static_cast<uint8_t>(retry_cnt);
    connect_one(link.a.qp.get(), lab.a(), rc, lab.b().gid, lab.b().port.lid, 0xfffffe);
    expect_retries_to_run_out(link.a.qp.get(), link.a, rc);
  }
}

void peer_not_connected(Lab& lab) {
  LinkOptions options;
  options.connected = false;
  Link link = lab.make_link(options);
  RcOptions rc;
  rc.timeout = 12;
  rc.retry_cnt = 3;
  connect_one(link.a.qp.get(), lab.a(), rc, lab.b().gid, lab.b().port.lid, link.b.qp->qp_num);
  expect_retries_to_run_out(link.a.qp.get(), link.a, rc);
}

void peer_destroyed(Lab& lab) {
  LinkOptions options;
  options.rc.timeout = 12;
  options.rc.retry_cnt = 3;
  Link link = lab.make_link(options);
  post_recv_ok(link.b.qp.get(), 11, link.b.sge(0, 8));
  SendRequest request(IBV_WR_SEND, 5, link.a.sge(0, 8));
  post_ok(link.a.qp.get(), request);
  expect_completion(link.a.send_cq.get(), 5, {IBV_WC_SUCCESS});
  link.b.qp.reset();
  expect_retries_to_run_out(link.a.qp.get(), link.a, options.rc);
}

// Either nobody is found at once, or nobody answers.
void nobody_with_that_gid(Lab& lab) {
  LinkOptions options;
  options.connected = false;
  Link link = lab.make_link(options);
  RcOptions rc;
  rc.timeout = 12;
  rc.retry_cnt = 1;
  ibv_gid gid = lab.b().gid;
  gid.raw[15] = 0xee;
  must(change_to_init(rc).apply(link.a.qp.get()), "ibv_modify_qp to INIT");
  const int to_rtr =
      change_to_rtr(rc, lab.a(), gid, lab.b().port.lid, link.b.qp->qp_num).apply(link.a.qp.get());
  expect_errno(to_rtr, {0, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT}, "ibv_modify_qp to RTR");
  if (to_rtr != 0) {
    expect_state(link.a.qp.get(), IBV_QPS_INIT);
    return;
  }
  must(change_to_rts(rc).apply(link.a.qp.get()), "ibv_modify_qp to RTS");
  SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 8));
  post_ok(link.a.qp.get(), request);
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_RETRY_EXC_ERR});
}

// The responder's QP takes no harm from not being ready, and the time it names is waited for.
void no_receive_posted(Lab& lab) {
  for (const uint8_t rnr_retry : {0, 1, 3}) {
    LinkOptions options;
    options.rc.rnr_retry = rnr_retry;
    options.rc.min_rnr_timer = 20;  // 10.24 ms
    Link link = lab.make_link(options);
    const auto start = Clock::now();
    SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 8));
    post_ok(link.a.qp.get(), request);
    expect_completion(link.a.send_cq.get(), 1, {IBV_WC_RNR_RETRY_EXC_ERR});
    const double took_ms = milliseconds_since(start);
    expect_state(link.a.qp.get(), IBV_QPS_ERR);
    expect_state(link.b.qp.get(), IBV_QPS_RTS);
    if (took_ms < 10.24 * rnr_retry || took_ms > 10.24 * 4 * (rnr_retry + 1) + 1000) {
      fail("with rnr_retry %u the error came after %.1f ms", rnr_retry, took_ms);
    }
  }
}

// Not an error: with rnr_retry 7 the SEND waits for as long as it takes.
void receive_posted_late(Lab& lab) {
  LinkOptions options;
  options.rc.min_rnr_timer = 14;  // 1.28 ms
  Link link = lab.make_link(options);
  std::memset(link.a.memory.data(), 9, 5000);
  SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 5000));
  post_ok(link.a.qp.get(), request);
  if (poll_one(link.a.send_cq.get(), std::chrono::milliseconds(100))) {
    fail("a completion although no receive was posted");
  }
  post_recv_ok(link.b.qp.get(), 11, link.b.sge(0, 5000));
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(link.b.recv_cq.get(), 11, {IBV_WC_SUCCESS});
  expect_bytes({link.b.memory.data(), 5000}, std::byte{9}, "the receive");
}

constexpr Row kNoAnswerRows[] = {
    {"no QP of that number: retries run out in time", nobody_with_that_qpn},
    {"peer's QP not connected: retries run out in time", peer_not_connected},
    {"peer's QP destroyed: retries run out in time", peer_destroyed},
    {"no device of that GID", nobody_with_that_gid},
    {"no receive posted", no_receive_posted},
    {"receive posted late (allowed)", receive_posted_late},
};

// ---- limits ----

void completion_queue_limits(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  const auto make = [context](int cqe, int vector) {
    return CqPtr(ibv_create_cq(context, cqe, nullptr, nullptr, vector));
  };
  const int most = lab.a().attr.max_cqe;
  for (const int cqe : {0, -1, most + 1}) {
    expect_refused(make(cqe, 0), {EINVAL}, "ibv_create_cq with a size out of range");
  }
  for (const int vector : {-1, context->num_comp_vectors}) {
    expect_refused(make(16, vector), {EINVAL}, "ibv_create_cq with a vector out of range");
  }
  for (const int cqe : {1, most}) {
    if (must(make(cqe, 0).get(), "ibv_create_cq at the limit")->cqe < cqe) {
      fail("a CQ has fewer entries than asked for");
    }
  }
}

void queue_pair_limits(Lab& lab) {
  const ibv_device_attr& attr = lab.a().attr;
  const CqPtr cq(
      must(ibv_create_cq(lab.a().context.get(), 16, nullptr, nullptr, 0), "ibv_create_cq"));
  const auto make = [&](const ibv_qp_cap& cap, ibv_qp_type type) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap = cap;
    init.qp_type = type;
    return QpPtr(ibv_create_qp(lab.a().pd.get(), &init));
  };
  const auto most_wr = static_cast<uint32_t>(attr.max_qp_wr);
  const auto most_sge = static_cast<uint32_t>(attr.max_sge);
  const ibv_qp_cap over[] = {{most_wr + 1, 1, 1, 1, 0},  {1, most_wr + 1, 1, 1, 0},
                             {1, 1, most_sge + 1, 1, 0}, {1, 1, 1, most_sge + 1, 0},
                             {1, 1, 1, 1, 1u << 24},     {~0u, 1, 1, 1, 0},
                             {1, ~0u, 1, 1, 0},          {1, 1, ~0u, 1, 0},
                             {1, 1, 1, ~0u, 0},          {1, 1, 1, 1, ~0u}};
  for (const ibv_qp_cap& cap : over) {
    expect_refused(make(cap, IBV_QPT_RC), {EINVAL}, "ibv_create_qp over a limit");
  }
  const ibv_qp_cap at[] = {{most_wr, 1, 1, 1, 0},
                           {1, most_wr, 1, 1, 0},
                           {1, 1, most_sge, most_sge, 0},
                           {0, 1, 0, 1, 0},
                           {1, 0, 1, 0, 0}};
  for (const ibv_qp_cap& cap : at) must(make(cap, IBV_QPT_RC).get(), "ibv_create_qp at a limit");
  expect_refused(make(at[2], static_cast<ibv_qp_type>(99)), {EINVAL, EOPNOTSUPP},
                 "ibv_create_qp of an unknown type");
}

void region_longer_than_the_limit(Lab& lab) {
  const uint64_t most = lab.a().attr.max_mr_size;
  if (most >= ~uint64_t{0} - 4096) throw Skipped("max_mr_size is the whole address space");
  const Memory memory(4096);
  expect_refused(register_memory(lab.a().pd.get(), memory.data(), most + 1, 0), {EINVAL, EFAULT},
                 "registering more than max_mr_size");
}

// Makes objects until the table is full, which must be said with ENOMEM and be where the device
// said.
template <typename Owner, typename Make>
void fill_table(const char* what, int limit, Make make) {
  // A process of rocemu's has no more of the NIC's mappings, of which each queue takes one.
  constexpr int kMaxWorthFilling = 30'000;
  if (limit > kMaxWorthFilling) throw Skipped("the table is too large to fill");
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  std::vector<Owner> objects;
  for (;;) {
    Owner object = make();
    if (!object) break;
    objects.push_back(std::move(object));
    if (objects.size() > static_cast<size_t>(limit)) fail("more %s than the device has", what);
    if (Clock::now() > deadline) throw Skipped("filling the table takes too long");
  }
  expect_errno(errno, {ENOMEM}, what);
  constexpr size_t kMaxTakenAlready = 32;  // by the laboratory itself, and reserved numbers
  if (objects.size() + kMaxTakenAlready < static_cast<size_t>(limit)) {
    fail("%s: full at %zu of %d", what, objects.size(), limit);
  }
}

void full_pd_table(Lab& lab) {
  fill_table<PdPtr>("ibv_alloc_pd", lab.a().attr.max_pd,
                    [&] { return PdPtr(ibv_alloc_pd(lab.a().context.get())); });
}

void full_mr_table(Lab& lab) {
  const Memory memory(4096);
  fill_table<MrPtr>("ibv_reg_mr", lab.a().attr.max_mr,
                    [&] { return register_memory(lab.a().pd.get(), memory.data(), 4096, 0); });
}

void full_cq_table(Lab& lab) {
  fill_table<CqPtr>("ibv_create_cq", lab.a().attr.max_cq, [&] {
    return CqPtr(ibv_create_cq(lab.a().context.get(), 1, nullptr, nullptr, 0));
  });
}

void full_qp_table(Lab& lab) {
  const CqPtr cq(
      must(ibv_create_cq(lab.a().context.get(), 1, nullptr, nullptr, 0), "ibv_create_cq"));
  fill_table<QpPtr>("ibv_create_qp", lab.a().attr.max_qp, [&] {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {1, 1, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    return QpPtr(ibv_create_qp(lab.a().pd.get(), &init));
  });
}

// ---- objects in use ----

// A refused destruction must leave the object whole: the owner then destroys it when it may.
void destroy_in_use(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  const Memory memory(4096);
  const PdPtr pd(must(ibv_alloc_pd(context), "ibv_alloc_pd"));
  const ChannelPtr channel(must(ibv_create_comp_channel(context), "ibv_create_comp_channel"));
  const CqPtr cq(must(ibv_create_cq(context, 4, nullptr, channel.get(), 0), "ibv_create_cq"));
  expect_errno(ibv_destroy_comp_channel(channel.get()), {EBUSY}, "destroying a channel in use");
  {
    const MrPtr mr = register_memory(pd.get(), memory.data(), 4096, kAllRights);
    must(mr.get(), "ibv_reg_mr");
    expect_errno(ibv_dealloc_pd(pd.get()), {EBUSY}, "deallocating a PD with a region");
  }
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  const QpPtr qp(must(ibv_create_qp(pd.get(), &init), "ibv_create_qp"));
  expect_errno(ibv_dealloc_pd(pd.get()), {EBUSY}, "deallocating a PD with a QP");
  expect_errno(ibv_destroy_cq(cq.get()), {EBUSY}, "destroying a CQ in use");
}

constexpr Row kLimitRows[] = {
    {"completion queues at and over the limits", completion_queue_limits},
    {"queue pairs at and over the limits", queue_pair_limits},
    {"region longer than max_mr_size", region_longer_than_the_limit},
    {"full table of PDs", full_pd_table},
    {"full table of memory regions", full_mr_table},
    {"full table of completion queues", full_cq_table},
    {"full table of queue pairs", full_qp_table},
    {"destroying objects in use", destroy_in_use},
};

}  // namespace

std::span<const Row> no_answer_rows() { return kNoAnswerRows; }
std::span<const Row> limit_rows() { return kLimitRows; }

}  // namespace rocemu::e2e
