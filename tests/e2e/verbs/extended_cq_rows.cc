// Extended completion queues: every field of a completion, the polling functions, timestamps
// (ibv_create_cq_ex(3)), and CQs of many QPs, of each vector, and resized.
#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <thread>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint64_t kTimes =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr uint64_t kEveryField =
    IBV_WC_STANDARD_FLAGS | kTimes | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG;

// A pair whose second end receives by an extended CQ.
struct Extended {
  CqPtr owner;
  ibv_cq_ex* cq;
  Ends ends;
};

CqPtr make_extended_cq(const Device& device, uint64_t fields, uint32_t flags = 0) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 64;
  init.wc_flags = fields;
  if (flags != 0) init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  init.flags = flags;
  ibv_cq_ex* cq = ibv_create_cq_ex(device.context.get(), &init);
  if (cq == nullptr && errno == EOPNOTSUPP) throw Skipped("the device does not offer these fields");
  return CqPtr(ibv_cq_ex_to_cq(must(cq, "ibv_create_cq_ex")));
}

Extended make_extended(Lab& lab, ibv_qp_type type, uint64_t fields) {
  CqPtr cq = make_extended_cq(lab.b(), fields);
  EndOptions first, second;
  first.type = second.type = type;
  second.recv_cq = cq.get();
  ibv_cq_ex* extended = reinterpret_cast<ibv_cq_ex*>(cq.get());
  Extended made{std::move(cq), extended, {make_end(lab.a(), first), make_end(lab.b(), second)}};
  connect(made.ends.a, made.ends.b);
  return made;
}

// A poll of the CQ, which waits for the first completion and ends with the object: what a row
// throws must not leave the CQ locked.
class Poll {
 public:
  explicit Poll(ibv_cq_ex* cq) : cq_(cq) {
    ibv_poll_cq_attr attr{};
    const auto deadline = Clock::now() + kPatience;
    int error;
    while ((error = ibv_start_poll(cq, &attr)) == ENOENT) {
      if (Clock::now() > deadline) fail("no completion");
      std::this_thread::yield();
    }
    must(error, "ibv_start_poll");
  }
  ~Poll() { ibv_end_poll(cq_); }
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

 private:
  ibv_cq_ex* cq_;
};

void send_with_immediate(Ends& ends, uint64_t receive_id, ibv_ah* ah = nullptr) {
  post_recv_ok(ends.b.qp.get(), receive_id, ends.b.sge(0, 500));
  SendRequest request(IBV_WR_SEND_WITH_IMM, 10, ends.a.sge(0, 100));
  request.wr.imm_data = htonl(0x12345678);
  if (ah != nullptr) address(request, ah, ends.b);
  post_ok(ends.a.qp.get(), request);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
}

void every_field_of_rc(Lab& lab) {
  Extended made = make_extended(lab, IBV_QPT_RC, kEveryField);
  send_with_immediate(made.ends, 7);
  const Poll poll(made.cq);
  expect_equal(made.cq->wr_id, 7, "wr_id");
  expect_equal(made.cq->status, IBV_WC_SUCCESS, "status");
  expect_equal(ibv_wc_read_opcode(made.cq), IBV_WC_RECV, "opcode");
  expect_equal(ibv_wc_read_vendor_err(made.cq), 0, "vendor_err");
  expect_equal(ibv_wc_read_byte_len(made.cq), 100, "byte_len");
  expect_equal(ntohl(ibv_wc_read_imm_data(made.cq)), 0x12345678, "imm_data");
  expect_equal(ibv_wc_read_qp_num(made.cq), made.ends.b.qp->qp_num, "qp_num");
  expect_equal(ibv_wc_read_wc_flags(made.cq) & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM, "wc_flags");
  expect_equal(ibv_wc_read_flow_tag(made.cq), 0, "flow_tag");
}

void every_field_of_ud(Lab& lab) {
  Extended made = make_extended(lab, IBV_QPT_UD, kEveryField);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  send_with_immediate(made.ends, 8, ah.get());
  const Poll poll(made.cq);
  expect_equal(made.cq->wr_id, 8, "wr_id");
  expect_equal(made.cq->status, IBV_WC_SUCCESS, "status");
  expect_equal(ibv_wc_read_opcode(made.cq), IBV_WC_RECV, "opcode");
  expect_equal(ibv_wc_read_byte_len(made.cq), kGrhBytes + 100, "byte_len");
  expect_equal(ntohl(ibv_wc_read_imm_data(made.cq)), 0x12345678, "imm_data");
  expect_equal(ibv_wc_read_qp_num(made.cq), made.ends.b.qp->qp_num, "qp_num");
  expect_equal(ibv_wc_read_src_qp(made.cq), made.ends.a.qp->qp_num, "src_qp");
  expect_equal(ibv_wc_read_wc_flags(made.cq) & (IBV_WC_GRH | IBV_WC_WITH_IMM),
               IBV_WC_GRH | IBV_WC_WITH_IMM, "wc_flags");
  // RoCE devices tell by it which IP header the GRH is; what a program makes of it is a path.
  ibv_wc_read_sl(made.cq);
  expect_equal(ibv_wc_read_slid(made.cq), 0, "slid");  // RoCE has no LIDs
  expect_equal(ibv_wc_read_dlid_path_bits(made.cq), 0, "dlid_path_bits");
  expect_equal(ibv_wc_read_cvlan(made.cq), 0, "cvlan");
}

uint64_t raw_clock(const Device& device) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  must(ibv_query_rt_values_ex(device.context.get(), &values), "ibv_query_rt_values_ex");
  return static_cast<uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(values.raw_clock.tv_nsec);
}

uint64_t wall_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void expect_between(uint64_t from, uint64_t is, uint64_t to, const char* what) {
  if (from <= is && is <= to) return;
  fail("%s is %llu, must be from %llu to %llu", what, static_cast<unsigned long long>(is),
       static_cast<unsigned long long>(from), static_cast<unsigned long long>(to));
}

// The device's clock is that of ibv_query_rt_values_ex; the wall clock may be a little off, since
// the device's has to be converted to it.
void timestamps(Lab& lab) {
  Extended made = make_extended(lab, IBV_QPT_RC, kTimes);
  constexpr uint64_t kConversionNs = 20'000'000;
  uint64_t before = raw_clock(lab.b());
  for (int i = 0; i < 3; ++i) {
    const uint64_t wall_before = wall_clock_ns();
    send_with_immediate(made.ends, 1);
    const Poll poll(made.cq);
    const uint64_t completed = ibv_wc_read_completion_ts(made.cq);
    const uint64_t wall = ibv_wc_read_completion_wallclock_ns(made.cq);
    expect_between(before, completed, raw_clock(lab.b()), "the timestamp");
    expect_between(wall_before - kConversionNs, wall, wall_clock_ns() + kConversionNs,
                   "the wall clock's timestamp");
    before = completed;
  }
}

// Of completions that are taken at once: none is earlier than the one before it, and each has one
// time, however often that is asked for.
void timestamps_in_order(Lab& lab) {
  constexpr uint64_t kWrites = 60;
  CqPtr owner = make_extended_cq(lab.a(), kTimes);
  auto* const cq = reinterpret_cast<ibv_cq_ex*>(owner.get());
  EndOptions options;
  options.send_cq = owner.get();
  options.max_send_wr = kWrites;
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), {})};
  connect(ends.a, ends.b);
  uint64_t raw = 0, wall = 0;
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < kWrites; ++i)
      post(ends.a, IBV_WR_RDMA_WRITE, i, ends.a.sge(0, 8), ends.b);
    for (uint64_t taken = 0; taken < kWrites;) {
      const Poll poll(cq);
      do {
        expect_between(raw, ibv_wc_read_completion_ts(cq), UINT64_MAX, "a timestamp");
        expect_between(wall, ibv_wc_read_completion_wallclock_ns(cq), UINT64_MAX,
                       "a timestamp of the wall clock");
        raw = ibv_wc_read_completion_ts(cq);
        wall = ibv_wc_read_completion_wallclock_ns(cq);
        expect_equal(ibv_wc_read_completion_wallclock_ns(cq), wall, "the same timestamp again");
        ++taken;
      } while (ibv_next_poll(cq) == 0);
    }
  }
}

// Takes completion `id`, and the next one in the same poll. False when that one came later, and was
// taken by a poll of its own.
bool polled_with_the_next(ibv_cq_ex* cq, uint64_t id) {
  int next;
  {
    const Poll poll(cq);
    expect_equal(cq->wr_id, id, "wr_id after ibv_end_poll");
    next = ibv_next_poll(cq);
    if (next == 0) {
      expect_equal(cq->wr_id, id + 1, "wr_id after ibv_next_poll");
      expect_errno(ibv_next_poll(cq), {ENOENT}, "ibv_next_poll at the end");
      return true;
    }
  }
  expect_errno(next, {ENOENT}, "ibv_next_poll");
  const Poll poll(cq);
  expect_equal(cq->wr_id, id + 1, "wr_id of what came later");
  return false;
}

// When a completion is shown is the NIC's affair, so that the next one may not be there yet: then
// once more.
void polled_by_parts(Lab& lab) {
  Extended made = make_extended(lab, IBV_QPT_RC, IBV_WC_STANDARD_FLAGS);
  ibv_poll_cq_attr attr{};
  expect_errno(ibv_start_poll(made.cq, &attr), {ENOENT}, "ibv_start_poll of an empty CQ");
  bool together = false;
  for (int attempt = 0; attempt < 50 && !together; ++attempt) {
    for (const uint64_t id : {1, 2, 3}) send_with_immediate(made.ends, id);
    {
      const Poll first(made.cq);
      expect_equal(made.cq->wr_id, 1, "wr_id");
    }
    together = polled_with_the_next(made.cq, 2);
  }
  if (!together) fail("ibv_next_poll never had a second completion");
  send_with_immediate(made.ends, 4);
  expect_completion(ibv_cq_ex_to_cq(made.cq), 4, {IBV_WC_SUCCESS});  // by ibv_poll_cq
  attr.comp_mask = 1;
  expect_errno(ibv_start_poll(made.cq, &attr), {EINVAL}, "ibv_start_poll with a comp_mask");
}

void failed_one(Lab& lab) {
  Extended made = make_extended(lab, IBV_QPT_RC, IBV_WC_STANDARD_FLAGS);
  post_recv_ok(made.ends.b.qp.get(), 5, made.ends.b.sge(0, 8));
  must(change_to(IBV_QPS_ERR).apply(made.ends.b.qp.get()), "ibv_modify_qp to ERR");
  const Poll poll(made.cq);
  expect_equal(made.cq->wr_id, 5, "wr_id");
  expect_equal(made.cq->status, IBV_WC_WR_FLUSH_ERR, "status");
  expect_equal(ibv_wc_read_qp_num(made.cq), made.ends.b.qp->qp_num, "qp_num");
}

// Nobody else can wait for the end of a batch of a CQ that one thread alone uses, so that what
// takes completions out of it does not wait, either. In another CQ it may.
void destroyed_in_a_batch(Lab& lab) {
  const CqPtr owner =
      make_extended_cq(lab.b(), IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  auto* const cq = reinterpret_cast<ibv_cq_ex*>(owner.get());
  EndOptions options;
  options.send_cq = options.recv_cq = owner.get();
  Ends kept{make_end(lab.a(), {}), make_end(lab.b(), options)};
  Ends gone{make_end(lab.a(), {}), make_end(lab.b(), options)};
  uint64_t id = 1;
  for (Ends* ends : {&kept, &gone, &kept}) {
    if (id <= 2) connect(ends->a, ends->b);
    post_recv_ok(ends->b.qp.get(), id++, ends->b.sge(0, 8));
  }
  const uint32_t kept_qpn = kept.b.qp->qp_num;
  must(change_to(IBV_QPS_ERR).apply(gone.b.qp.get()), "ibv_modify_qp to ERR");
  {
    const Poll poll(cq);
    expect_equal(cq->wr_id, 2, "wr_id");
    must(change_to(IBV_QPS_ERR).apply(kept.b.qp.get()), "ibv_modify_qp to ERR");
    gone.b.qp.reset();
    expect_equal(cq->wr_id, 2, "wr_id of a QP that is gone, in the middle of a batch");
    must(ibv_next_poll(cq), "ibv_next_poll");
    expect_equal(ibv_wc_read_qp_num(cq), kept_qpn, "qp_num");
    must(change_to(IBV_QPS_RESET).apply(kept.b.qp.get()), "ibv_modify_qp to RESET");
    expect_equal(ibv_next_poll(cq), ENOENT, "ibv_next_poll behind what a reset took away");
    expect_equal(ibv_resize_cq(owner.get(), 128), EBUSY, "ibv_resize_cq in the middle of a batch");
  }
  must(ibv_resize_cq(owner.get(), 128), "ibv_resize_cq");
}

void refused(Lab& lab) {
  const auto make = [&lab](auto change) {
    ibv_cq_init_attr_ex init{};
    init.cqe = 16;
    change(init);
    ibv_cq_ex* cq = ibv_create_cq_ex(lab.a().context.get(), &init);
    return CqPtr(cq != nullptr ? ibv_cq_ex_to_cq(cq) : nullptr);
  };
  expect_refused(make([](auto& init) { init.wc_flags = uint64_t{1} << 40; }), {EINVAL, EOPNOTSUPP},
                 "an unknown field");
  expect_refused(make([](auto& init) { init.comp_mask = 1u << 20; }), {EINVAL, EOPNOTSUPP},
                 "an unknown comp_mask");
  const auto flags = [](unsigned value) {
    return [value](auto& init) {
      init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
      init.flags = value;
    };
  };
  expect_refused(make(flags(1u << 20)), {EINVAL, EOPNOTSUPP}, "an unknown flag");
  must(make(flags(IBV_CREATE_CQ_ATTR_SINGLE_THREADED)).get(), "a single-threaded CQ");
  const CqPtr deaf = make(flags(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
  expect_errno(deaf ? 0 : errno, {0, EOPNOTSUPP}, "a CQ that ignores overruns");
  expect_refused(make([](auto& init) { init.cqe = 0; }), {EINVAL}, "no entries");
  expect_refused(make([&lab](auto& init) {
                   init.comp_vector = static_cast<uint32_t>(lab.a().context->num_comp_vectors);
                 }),
                 {EINVAL}, "a vector that is not there");
}

// ---- CQs of many ----

void of_many_queue_pairs(Lab& lab) {
  constexpr uint64_t kPairCount = 8;
  const CqPtr owner(
      must(ibv_create_cq(lab.b().context.get(), 64, nullptr, nullptr, 0), "ibv_create_cq"));
  ibv_cq* const cq = owner.get();
  EndOptions options;
  options.send_cq = options.recv_cq = cq;
  std::vector<Ends> all;
  for (uint64_t i = 0; i < kPairCount; ++i) {
    all.push_back({make_end(lab.a(), {}), make_end(lab.b(), options)});
    connect(all.back().a, all.back().b);
  }
  for (uint64_t i = 0; i < kPairCount; ++i) {
    send_with_immediate(all[i], i);
    expect_equal(expect_completion(cq, i, {IBV_WC_SUCCESS}).qp_num, all[i].b.qp->qp_num, "qp_num");
  }
  while (all.size() > 1) all.pop_back();
  expect_errno(ibv_destroy_cq(cq), {EBUSY}, "destroying a CQ of one more QP");
}

void every_vector(Lab& lab) {
  ibv_context* context = lab.b().context.get();
  const ChannelPtr channel(must(ibv_create_comp_channel(context), "ibv_create_comp_channel"));
  for (int vector = 0; vector < context->num_comp_vectors; ++vector) {
    const CqPtr cq(
        must(ibv_create_cq(context, 16, nullptr, channel.get(), vector), "ibv_create_cq"));
    EndOptions options;
    options.recv_cq = cq.get();
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), options)};
    connect(ends.a, ends.b);
    must(ibv_req_notify_cq(cq.get(), 0), "ibv_req_notify_cq");
    send_with_immediate(ends, 1);
    expect_completion_event(channel.get(), cq.get());
    expect_completion(cq.get(), 1, {IBV_WC_SUCCESS});
  }
}

void cq_resized(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  ibv_cq* cq = ends.b.recv_cq.get();
  for (const uint64_t id : {1, 2}) send_with_immediate(ends, id);
  const int error = ibv_resize_cq(cq, 256);
  if (error == EOPNOTSUPP) throw Skipped("the device does not resize CQs");
  must(error, "ibv_resize_cq to more");
  if (cq->cqe < 256) fail("a CQ of %d entries after it was resized to 256", cq->cqe);
  send_with_immediate(ends, 3);
  expect_completion(cq, 1, {IBV_WC_SUCCESS});
  must(ibv_resize_cq(cq, 4), "ibv_resize_cq to less");
  send_with_immediate(ends, 4);
  for (const uint64_t id : {2, 3, 4}) expect_completion(cq, id, {IBV_WC_SUCCESS});
  for (const int entries : {0, -1, lab.b().attr.max_cqe + 1})
    expect_errno(ibv_resize_cq(cq, entries), {EINVAL}, "ibv_resize_cq to a size out of range");
}

// More than the NIC takes over at once, with others' work in between.
void cq_resized_with_many(Lab& lab) {
  const int most = lab.a().attr.max_cqe;
  const int completions = std::min(most / 2, 3000);
  const CqPtr cq(must(ibv_create_cq(lab.a().context.get(), completions, nullptr, nullptr, 0),
                      "ibv_create_cq"));
  EndOptions options;
  options.send_cq = cq.get();
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), {})};
  connect(ends.a, ends.b);
  ibv_sge sge = ends.a.sge(0, 8);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = ends.b.sge(0, 8).addr;
  wr.wr.rdma.rkey = ends.b.mr->rkey;
  const auto deadline = Clock::now() + kPatience;
  while (wr.wr_id < static_cast<uint64_t>(completions)) {
    if (ibv_post_send(ends.a.qp.get(), &wr, &bad) == 0) ++wr.wr_id;
    if (Clock::now() > deadline) fail("the send queue has no room any more");
  }
  const int error = ibv_resize_cq(cq.get(), most);
  if (error == EOPNOTSUPP) throw Skipped("the device does not resize CQs");
  must(error, "ibv_resize_cq with many completions inside");
  for (uint64_t id = 0; id < wr.wr_id; ++id) expect_completion(cq.get(), id, {IBV_WC_SUCCESS});
}

bool stays_in_rts(ibv_qp* qp) {
  const auto deadline = Clock::now() + kPatience;
  while (query_state(qp) == IBV_QPS_RTS) {
    if (Clock::now() > deadline) return true;
    std::this_thread::yield();
  }
  return false;
}

CqPtr make_smallest_cq(Lab& lab) {
  CqPtr cq(must(ibv_create_cq(lab.a().context.get(), 1, nullptr, nullptr, 0), "ibv_create_cq"));
  if (cq->cqe >= 16) throw Skipped("the smallest CQ has 16 entries and more");
  return cq;
}

// A pair whose sender has had a completion more than its CQ holds.
Ends overrun_by_writes(Lab& lab, ibv_cq* cq) {
  EndOptions options;
  options.send_cq = cq;
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), {})};
  connect(ends.a, ends.b);
  for (int i = 0; i <= cq->cqe; ++i) post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8), ends.b);
  expect_cq_event(lab.a(), cq, IBV_EVENT_CQ_ERR);
  return ends;
}

// A completion more than the CQ holds (IBTA vol 1, 11.6.3.1). A device may also fail the QPs that
// lose completions by it.
void overrun(Lab& lab) {
  const CqPtr cq = make_smallest_cq(lab);
  const Ends ends = overrun_by_writes(lab, cq.get());
  if (stays_in_rts(ends.a.qp.get()))
    throw Skipped("the CQ failed, but the device leaves its QPs as they are");
  expect_qp_event(lab.a(), ends.a.qp.get(), IBV_EVENT_QP_FATAL);
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
}

// A work queue fails with its CQ, and its event names it.
void overrun_of_a_work_queue(Lab& lab) {
  ibv_context* const context = lab.a().context.get();
  const CqPtr cq = make_smallest_cq(lab);
  ibv_wq_init_attr init{};
  init.wq_type = IBV_WQT_RQ;
  init.max_wr = init.max_sge = 1;
  init.pd = lab.a().pd.get();
  init.cq = cq.get();
  ibv_wq* const wq = ibv_create_wq(context, &init);
  if (wq == nullptr && errno == EOPNOTSUPP) throw Skipped("the device has no work queues");
  must(wq, "ibv_create_wq");
  ibv_wq_attr ready{};
  ready.attr_mask = IBV_WQ_ATTR_STATE;
  ready.wq_state = IBV_WQS_RDY;
  must(ibv_modify_wq(wq, &ready), "ibv_modify_wq");
  {
    const Ends ends = overrun_by_writes(lab, cq.get());
    bool told = false;
    for (int i = 0; i < 2; ++i) {
      pollfd readable{context->async_fd, POLLIN, 0};
      if (poll(&readable, 1, 10'000) != 1) fail("no event");
      ibv_async_event event{};
      must(ibv_get_async_event(context, &event), "ibv_get_async_event");
      told = told || (event.event_type == IBV_EVENT_WQ_FATAL && event.element.wq == wq);
      ibv_ack_async_event(&event);
    }
    if (!told) fail("no event of the work queue");
  }
  expect_equal(wq->state, IBV_WQS_ERR, "state");
  must(ibv_destroy_wq(wq), "ibv_destroy_wq");
}

// Completions that find no room are lost, and nothing else comes of it.
void overrun_ignored(Lab& lab) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 1;
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  init.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  ibv_cq_ex* extended = ibv_create_cq_ex(lab.a().context.get(), &init);
  if (extended == nullptr && errno == EOPNOTSUPP) throw Skipped("the device looks at overruns");
  const CqPtr cq(ibv_cq_ex_to_cq(must(extended, "ibv_create_cq_ex")));
  if (cq->cqe >= 8) throw Skipped("the smallest CQ has 8 entries and more");
  EndOptions options;
  options.send_cq = cq.get();
  Ends ends{make_end(lab.a(), options), make_end(lab.b(), {})};
  connect(ends.a, ends.b);
  ends.b.fill(std::byte{0});
  for (int i = 0; i < cq->cqe + 4; ++i)
    post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, 8), ends.b);
  const uint64_t last = 0x1122334455667788;
  std::memcpy(ends.a.memory.data() + 64, &last, sizeof last);
  post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(64, 8), ends.b, 64);
  wait_for_word(ends.b, 64, last);
  expect_state(ends.a.qp.get(), IBV_QPS_RTS);
  // The first ones, perhaps, and one that comes when there is room.
  ibv_wc wc{};
  for (const auto deadline = Clock::now() + kPatience; wc.wr_id != 2;) {
    if (Clock::now() > deadline) fail("no completion comes any more");
    if (ibv_poll_cq(cq.get(), 1, &wc) == 1) continue;
    post(ends.a, IBV_WR_RDMA_WRITE, 2, ends.a.sge(0, 8), ends.b);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  lab.check_no_events();
}

}  // namespace

std::span<const Row> extended_cq_rows() {
  static constexpr Row kRows[] = {
      {"extended CQ: every field over RC", every_field_of_rc},
      {"extended CQ: every field over UD", every_field_of_ud},
      {"extended CQ: timestamps by the device's and the wall clock", timestamps},
      {"extended CQ: timestamps never run backwards", timestamps_in_order},
      {"extended CQ: start, next and end of polls", polled_by_parts},
      {"extended CQ: a flushed completion", failed_one},
      {"extended CQ: QPs destroyed and reset within a batch", destroyed_in_a_batch},
      {"extended CQ: unknown fields, masks, flags, vectors", refused},
      {"CQ: of eight QPs", of_many_queue_pairs},
      {"CQ: events of each completion vector", every_vector},
      {"CQ: resized with completions inside", cq_resized},
      {"CQ: resized with many completions inside", cq_resized_with_many},
      {"CQ: overrun, CQ error, QP fatal", overrun},
      {"CQ: overrun, work queue fatal", overrun_of_a_work_queue},
      {"CQ: overrun ignored", overrun_ignored},
  };
  return kRows;
}

}  // namespace rocemu::e2e
