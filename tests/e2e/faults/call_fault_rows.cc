// Faults of calls and posts.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "tests/e2e/faults/asked_fault.h"
#include "tests/e2e/faults/fault_rows.h"
#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

using std::chrono::milliseconds;

struct Call {
  const char* name;
  // 0 or errno
  std::function<int(Lab&, End&)> make;
};

template <class Owner>
int outcome(Owner object) {
  return object ? 0 : errno;
}

const Call kCalls[] = {
    {"open",
     [](Lab& lab, End&) { return outcome(ContextPtr(ibv_open_device(lab.a().context->device))); }},
    {"alloc-pd",
     [](Lab& lab, End&) { return outcome(PdPtr(ibv_alloc_pd(lab.a().context.get()))); }},
    {"reg-mr",
     [](Lab& lab, End& end) {
       return outcome(register_memory(lab.a().pd.get(), end.memory.data(), 64, 0));
     }},
    {"create-cq",
     [](Lab& lab, End&) {
       return outcome(CqPtr(ibv_create_cq(lab.a().context.get(), 4, nullptr, nullptr, 0)));
     }},
    {"resize-cq", [](Lab&, End& end) { return ibv_resize_cq(end.send_cq.get(), 100); }},
    {"create-qp",
     [](Lab& lab, End& end) {
       ibv_qp_init_attr attr{};
       attr.qp_type = IBV_QPT_RC;
       attr.send_cq = attr.recv_cq = end.send_cq.get();
       attr.cap = {1, 1, 1, 1, 0};
       return outcome(QpPtr(ibv_create_qp(lab.a().pd.get(), &attr)));
     }},
    {"modify-qp", [](Lab&, End& end) { return change_to(IBV_QPS_RESET).apply(end.qp.get()); }},
    {"create-srq",
     [](Lab& lab, End&) {
       ibv_srq_init_attr attr{};
       attr.attr = {4, 1, 0};
       return outcome(SrqPtr(ibv_create_srq(lab.a().pd.get(), &attr)));
     }},
    {"create-ah",
     [](Lab& lab, End&) {
       ibv_ah_attr attr{};
       attr.is_global = 1;
       attr.grh.dgid = lab.b().gid;
       attr.grh.sgid_index = lab.a().gid_index;
       attr.port_num = kPort;
       return outcome(AhPtr(ibv_create_ah(lab.a().pd.get(), &attr)));
     }},
    {"alloc-mw",
     [](Lab& lab, End&) { return outcome(MwPtr(ibv_alloc_mw(lab.a().pd.get(), IBV_MW_TYPE_1))); }},
    {"alloc-dm",
     [](Lab& lab, End&) {
       ibv_alloc_dm_attr attr{};
       attr.length = 64;
       return outcome(DmPtr(ibv_alloc_dm(lab.a().context.get(), &attr)));
     }},
    {"modify-srq",
     [](Lab& lab, End&) {
       const SrqPtr srq = make_srq(lab.a(), 4);
       ibv_srq_attr attr{};
       attr.srq_limit = 1;
       return ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT);
     }},
    {"open-xrcd",
     [](Lab& lab, End&) {
       ibv_xrcd_init_attr init{};
       init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
       init.fd = -1;
       init.oflags = O_CREAT;
       return outcome(XrcdPtr(ibv_open_xrcd(lab.a().context.get(), &init)));
     }},
    {"attach-mcast",
     [](Lab& lab, End&) {
       EndOptions options;
       options.type = IBV_QPT_UD;
       const End end = make_end(lab.a(), options);
       ibv_gid group{};
       group.raw[0] = 0xff;
       group.raw[1] = 0x0e;
       group.raw[15] = 9;
       const int error = ibv_attach_mcast(end.qp.get(), &group, 0);
       if (error == 0) must(ibv_detach_mcast(end.qp.get(), &group, 0), "ibv_detach_mcast");
       return error;
     }},
    {"create-counters",
     [](Lab& lab, End&) {
       ibv_counters_init_attr attr{};
       return outcome(CountersPtr(ibv_create_counters(lab.a().context.get(), &attr)));
     }},
    {"create-flow",
     [](Lab& lab, End&) {
       const CqPtr cq(must(ibv_create_cq(lab.a().context.get(), 4, nullptr, nullptr, 0), "a CQ"));
       ibv_qp_init_attr qp_attr{};
       qp_attr.qp_type = IBV_QPT_RAW_PACKET;
       qp_attr.send_cq = qp_attr.recv_cq = cq.get();
       qp_attr.cap = {1, 1, 1, 1, 0};
       const QpPtr qp(must(ibv_create_qp(lab.a().pd.get(), &qp_attr), "a raw packet QP"));
       ibv_flow_attr attr{};
       attr.type = IBV_FLOW_ATTR_SNIFFER;
       attr.size = sizeof attr;
       attr.port = kPort;
       return outcome(FlowPtr(ibv_create_flow(qp.get(), &attr)));
     }},
};

// Each call fails as it is told, once, and works before and afterwards.
void calls_fail(Lab& lab) {
  End end = make_end(lab.a(), {});
  for (const Call& call : kCalls) {
    if (const int error = call.make(lab, end); error != 0)
      fail("%s fails without a fault: %s", call.name, errno_text(error).c_str());
    AskedFault fault(device_of(lab.a()) + " call-fails errno=ENOSPC nth=2 call=" + call.name);
    const int first = call.make(lab, end);
    const int second = call.make(lab, end);
    const int third = call.make(lab, end);
    if (first != 0 || second != ENOSPC || third != 0)
      fail("%s: %s, %s, %s", call.name, errno_text(first).c_str(), errno_text(second).c_str(),
           errno_text(third).c_str());
  }
}

void calls_of_others_do_not_fail(Lab& lab) {
  AskedFault by_name(device_of(lab.a()) + " call-fails call=any program=somebody-else");
  AskedFault by_pid(device_of(lab.a()) + " call-fails call=any pid=1");
  AskedFault by_device(device_of(lab.b()) + " call-fails call=alloc-pd");
  End end = make_end(lab.a(), {});
  AskedFault own(device_of(lab.a()) + " call-fails call=alloc-pd program=faults");
  expect_refused(PdPtr(ibv_alloc_pd(lab.a().context.get())), {ENOMEM}, "ibv_alloc_pd");
}

void registering_is_slow(Lab& lab) {
  Memory memory(4096);
  AskedFault fault(device_of(lab.a()) + " call-slow call=reg-mr delay=100ms");
  const auto began = Clock::now();
  const MrPtr mr = register_memory(lab.a().pd.get(), memory.data(), 64, 0);
  if (!mr) fail_errno(errno, "ibv_reg_mr");
  if (Clock::now() - began < milliseconds(100)) fail("it was not slow");
}

// What 40 calls give, of which half fail, by chance: 'x' for a failure.
std::string chances(Lab& lab, const char* seed) {
  AskedFault fault(device_of(lab.a()) + " call-fails call=alloc-pd p=50% seed=" + seed);
  std::string calls;
  for (int i = 0; i < 40; ++i) {
    const PdPtr pd(ibv_alloc_pd(lab.a().context.get()));
    if (!pd) expect_errno(errno, {ENOMEM}, "ibv_alloc_pd");
    calls += pd ? '.' : 'x';
  }
  expect_equal(fault.strikes(), static_cast<uint64_t>(std::ranges::count(calls, 'x')), "strikes");
  return calls;
}

void chance_has_a_seed(Lab& lab) {
  const std::string calls = chances(lab, "7");
  if (std::ranges::count(calls, 'x') < 8 || std::ranges::count(calls, '.') < 8)
    fail("of 40 calls with p=50%%: %s", calls.c_str());
  if (chances(lab, "7") != calls) fail("the same seed gives other calls than %s", calls.c_str());
  if (chances(lab, "8") == calls) fail("another seed gives the same calls, %s", calls.c_str());
}

// 5 ms each, and EAGAIN for one in a hundred.
void mlx5_registers_slowly(Lab& lab) {
  Memory memory(4096);
  AskedFault fault(device_of(lab.a()) + " quirks=mlx5");
  constexpr int kMost = 1500;
  int made = 0;
  const auto began = Clock::now();
  while (register_memory(lab.a().pd.get(), memory.data(), 64, 0)) {
    if (++made == kMost) fail("none of %d registrations has failed", kMost);
  }
  expect_errno(errno, {EAGAIN}, "ibv_reg_mr");
  if (Clock::now() - began < made * milliseconds(5)) fail("it was not slow");
  expect_equal(fault.strikes(), static_cast<uint64_t>(made), "strikes of the delay");
}

void irdma_has_no_srq(Lab& lab) {
  AskedFault fault(device_of(lab.a()) + " quirks=irdma");
  ibv_srq_init_attr attr{};
  attr.attr = {4, 1, 0};
  expect_refused(SrqPtr(ibv_create_srq(lab.a().pd.get(), &attr)), {EOPNOTSUPP}, "ibv_create_srq");
}

int post_write(Ends& ends, uint64_t wr_id) {
  SendRequest request(IBV_WR_RDMA_WRITE, wr_id, ends.a.sge(0, 8));
  request.remote(ends.b.memory.address(), ends.b.mr->rkey);
  return post_send(ends.a.qp.get(), request.wr);
}

// The first post after the fault was asked for tells the program; from then on posts fail, and no
// more when it is over.
void posts_fail(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  {
    AskedFault fault(device_of(lab.a()) + " post-fails errno=EAGAIN queue=send times=2 qp=" +
                     std::to_string(ends.a.qp->qp_num));
    must(post_write(ends, 1), "the post by which the program hears of it");
    expect_errno(post_write(ends, 2), {EAGAIN}, "a post");
    expect_errno(post_write(ends, 3), {EAGAIN}, "a post");
    must(post_write(ends, 4), "a post after the last that was to fail");
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
    expect_no_completion(ends.a.send_cq.get());
    expect_equal(fault.strikes(), 2, "strikes");
  }
  must(post_write(ends, 5), "a post afterwards");
  expect_completion(ends.a.send_cq.get(), 5, {IBV_WC_SUCCESS});
}

void receives_fail(Lab& lab) {
  Ends ends = make_ends(lab, IBV_QPT_RC);
  AskedFault fault(device_of(lab.a()) + " post-fails queue=receive");
  must(post_write(ends, 1), "the post by which the program hears of it");
  ibv_sge sge = ends.a.sge(0, 100);
  ibv_recv_wr* bad = nullptr;
  expect_errno(post_recv(ends.a.qp.get(), 1, {&sge, 1}, &bad), {ENOMEM}, "ibv_post_recv");
  if (bad == nullptr) fail("bad_wr is not set");
  must(post_write(ends, 2), "a send");
  fault.clear();
  post_recv_ok(ends.a.qp.get(), 1, sge);
}

void extended_posts_fail(Lab& lab) {
  EndOptions options;
  options.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
  Ends ends = make_ends(lab, options);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(ends.a.qp.get());
  const auto write = [&](uint64_t wr_id) {
    ibv_wr_start(qp);
    qp->wr_id = wr_id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, ends.b.mr->rkey, ends.b.memory.address());
    ibv_wr_set_sge(qp, ends.a.mr->lkey, ends.a.memory.address(), 8);
    return ibv_wr_complete(qp);
  };
  AskedFault fault(device_of(lab.a()) + " post-fails times=1");
  must(write(1), "the post by which the program hears of it");
  expect_errno(write(2), {ENOMEM}, "ibv_wr_complete");
  must(write(3), "ibv_wr_complete");
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(ends.a.send_cq.get(), 3, {IBV_WC_SUCCESS});
}

}  // namespace

std::span<const Row> call_fault_rows() {
  static constexpr Row kRows[] = {
      {"call-fails: each of the calls", calls_fail},
      {"call-fails: of this program alone", calls_of_others_do_not_fail},
      {"call-slow: registering", registering_is_slow},
      {"call-fails: by chance, with a seed", chance_has_a_seed},
      {"quirks=mlx5: registering is slow and fails at times", mlx5_registers_slowly},
      {"quirks=irdma: no SRQ", irdma_has_no_srq},
      {"post-fails: sends", posts_fail},
      {"post-fails: receives", receives_fail},
      {"post-fails: ibv_wr_complete", extended_posts_fail},
  };
  return kRows;
}

}  // namespace rocemu::e2e
