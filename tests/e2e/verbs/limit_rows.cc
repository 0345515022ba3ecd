// What a device says it has, to the last one: as many objects of every kind, and no more; as large
// ones, and no larger. Tables are filled twice, so that what is destroyed is known to be given
// back. For a device whose tables can be filled in a moment (ibv_query_device(3)).
#include <fcntl.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr int kMaxWorthFilling = 2000;

// How many can be made until the device refuses, which it must do with ENOMEM.
template <typename Make>
size_t fill_once(const char* what, size_t limit, Make make) {
  std::vector<decltype(make())> objects;
  for (;;) {
    errno = 0;
    auto object = make();
    if (!object) break;
    objects.push_back(std::move(object));
    if (objects.size() > limit) fail("%s: more than the %zu there are", what, limit);
  }
  expect_errno(errno, {ENOMEM}, what);
  return objects.size();
}

// `held`: how many of them the laboratory and the row have of the device.
template <typename Make>
void fill(const char* what, int limit, size_t held, Make make) {
  if (limit > kMaxWorthFilling) throw Skipped("too many to fill");
  for (int round = 0; round < 2; ++round) {
    const size_t made = fill_once(what, static_cast<size_t>(limit), make);
    if (made + held != static_cast<size_t>(limit))
      fail("%s: %zu made and %zu held, must be %d together, in round %d", what, made, held, limit,
           round + 1);
  }
}

// Both of the laboratory's ends may be on one device.
size_t ends_on(const Lab& lab) { return std::strcmp(lab.a().name(), lab.b().name()) == 0 ? 2 : 1; }

CqPtr make_cq(const Device& device, int cqe = 1) {
  return CqPtr(ibv_create_cq(device.context.get(), cqe, nullptr, nullptr, 0));
}

QpPtr make_qp(const Device& device, ibv_cq* cq, ibv_qp_cap cap = {1, 1, 1, 1, 0}) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = cap;
  init.qp_type = IBV_QPT_RC;
  return QpPtr(ibv_create_qp(device.pd.get(), &init));
}

SrqPtr make_small_srq(const Device& device, uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  return SrqPtr(ibv_create_srq(device.pd.get(), &init));
}

// ---- how many ----

void domains(Lab& lab) {
  fill("ibv_alloc_pd", lab.a().attr.max_pd, ends_on(lab),
       [&] { return PdPtr(ibv_alloc_pd(lab.a().context.get())); });
}

void regions(Lab& lab) {
  const Memory memory(4096);
  fill("ibv_reg_mr", lab.a().attr.max_mr, ends_on(lab),
       [&] { return register_memory(lab.a().pd.get(), memory.data(), 4096, 0); });
}

void windows(Lab& lab) {
  fill("ibv_alloc_mw", lab.a().attr.max_mw, 0,
       [&] { return MwPtr(ibv_alloc_mw(lab.a().pd.get(), IBV_MW_TYPE_1)); });
}

void completion_queues(Lab& lab) {
  fill("ibv_create_cq", lab.a().attr.max_cq, 2 * ends_on(lab), [&] { return make_cq(lab.a()); });
}

void queue_pairs(Lab& lab) {
  const CqPtr cq = make_cq(lab.a());
  must(cq.get(), "ibv_create_cq");
  fill("ibv_create_qp", lab.a().attr.max_qp, ends_on(lab),
       [&] { return make_qp(lab.a(), cq.get()); });
}

void shared_queues(Lab& lab) {
  fill("ibv_create_srq", lab.a().attr.max_srq, 0, [&] { return make_small_srq(lab.a(), 1, 1); });
}

void address_handles(Lab& lab) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = lab.b().gid;
  attr.grh.sgid_index = lab.a().gid_index;
  attr.grh.hop_limit = 64;
  attr.port_num = kPort;
  fill("ibv_create_ah", lab.a().attr.max_ah, 0,
       [&] { return AhPtr(ibv_create_ah(lab.a().pd.get(), &attr)); });
}

ibv_gid group(uint8_t number) {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x12;
  gid.raw[15] = number;
  return gid;
}

// Groups, then members of one group.
void multicast(Lab& lab) {
  const ibv_device_attr& attr = lab.a().attr;
  if (attr.max_mcast_grp > 200 || attr.max_mcast_qp_attach > 200) throw Skipped("too many to fill");
  EndOptions options;
  options.type = IBV_QPT_UD;
  std::vector<End> ends;
  for (int i = 0; i <= attr.max_mcast_qp_attach; ++i) {
    ends.push_back(make_end(lab.a(), options));
    to_init(ends.back());
  }
  const auto detach = [](End& end, uint8_t number) {
    const ibv_gid gid = group(number);
    must(ibv_detach_mcast(end.qp.get(), &gid, 0), "ibv_detach_mcast");
  };
  const auto attach = [](End& end, uint8_t number) {
    const ibv_gid gid = group(number);
    return ibv_attach_mcast(end.qp.get(), &gid, 0);
  };
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < attr.max_mcast_grp; ++i)
      must(attach(ends[0], static_cast<uint8_t>(i)), "ibv_attach_mcast to one more group");
    expect_errno(attach(ends[0], static_cast<uint8_t>(attr.max_mcast_grp)), {ENOMEM},
                 "ibv_attach_mcast to more than max_mcast_grp groups");
    for (int i = 0; i < attr.max_mcast_grp; ++i) detach(ends[0], static_cast<uint8_t>(i));
    for (int i = 0; i < attr.max_mcast_qp_attach; ++i)
      must(attach(ends[static_cast<size_t>(i)], 0), "ibv_attach_mcast of one more QP");
    expect_errno(attach(ends.back(), 0), {ENOMEM},
                 "ibv_attach_mcast of more than max_mcast_qp_attach QPs");
    for (int i = 0; i < attr.max_mcast_qp_attach; ++i) detach(ends[static_cast<size_t>(i)], 0);
  }
}

// All of the device's memory at once, in pieces, and then no more of it.
void device_memory(Lab& lab) {
  ibv_context* context = lab.a().context.get();
  ibv_device_attr_ex attr{};
  must(ibv_query_device_ex(context, nullptr, &attr), "ibv_query_device_ex");
  if (attr.max_dm_size == 0) throw Skipped("the device has no memory");
  const auto allocate = [context](size_t bytes) {
    ibv_alloc_dm_attr init{};
    init.length = bytes;
    return ibv_alloc_dm(context, &init);
  };
  for (int round = 0; round < 2; ++round) {
    ibv_dm* halves[2];
    for (ibv_dm*& half : halves) half = must(allocate(attr.max_dm_size / 2), "ibv_alloc_dm");
    ibv_dm* more = allocate(64);
    expect_errno(more != nullptr ? 0 : errno, {ENOMEM}, "ibv_alloc_dm of more than max_dm_size");
    for (ibv_dm* half : halves) must(ibv_free_dm(half), "ibv_free_dm");
  }
}

// ---- how large ----

void longest_queues(Lab& lab) {
  const ibv_device_attr& attr = lab.a().attr;
  const CqPtr cq = make_cq(lab.a());
  const auto wr = static_cast<uint32_t>(attr.max_qp_wr), sge = static_cast<uint32_t>(attr.max_sge);
  must(make_qp(lab.a(), cq.get(), {wr, wr, sge, sge, 0}).get(), "ibv_create_qp at the limits");
  for (const ibv_qp_cap& cap : {ibv_qp_cap{wr + 1, 1, 1, 1, 0}, ibv_qp_cap{1, wr + 1, 1, 1, 0},
                                ibv_qp_cap{1, 1, sge + 1, 1, 0}, ibv_qp_cap{1, 1, 1, sge + 1, 0}})
    expect_refused(make_qp(lab.a(), cq.get(), cap), {EINVAL}, "ibv_create_qp over a limit");
  must(make_cq(lab.a(), attr.max_cqe).get(), "ibv_create_cq of max_cqe");
  expect_refused(make_cq(lab.a(), attr.max_cqe + 1), {EINVAL}, "ibv_create_cq over max_cqe");
  const auto srq_wr = static_cast<uint32_t>(attr.max_srq_wr);
  const auto srq_sge = static_cast<uint32_t>(attr.max_srq_sge);
  must(make_small_srq(lab.a(), srq_wr, srq_sge).get(), "ibv_create_srq at the limits");
  expect_refused(make_small_srq(lab.a(), srq_wr + 1, 1), {EINVAL}, "ibv_create_srq, max_srq_wr");
  expect_refused(make_small_srq(lab.a(), 1, srq_sge + 1), {EINVAL}, "ibv_create_srq, max_srq_sge");
}

// As many requests as the queue says are posted at once, with as many pieces, and all complete.
void full_queues(Lab& lab) {
  LinkOptions options;
  options.max_send_wr = options.max_recv_wr = static_cast<uint32_t>(lab.a().attr.max_qp_wr);
  options.max_send_sge = options.max_recv_sge = static_cast<uint32_t>(lab.a().attr.max_sge);
  options.cqe = lab.a().attr.max_cqe;
  Link link = lab.make_link(options);
  if (options.max_send_wr > 40'000) throw Skipped("too many to post");
  const std::vector<ibv_sge> pieces(options.max_send_sge, link.a.sge(0, 8));
  for (uint32_t i = 0; i < options.max_recv_wr; ++i) {
    std::vector<ibv_sge> places(options.max_recv_sge, link.b.sge(0, 8));
    must(post_recv(link.b.qp.get(), i, places), "ibv_post_recv");
  }
  for (uint32_t i = 0; i < options.max_send_wr; ++i) {
    SendRequest request(IBV_WR_SEND, i, pieces[0]);
    request.wr.sg_list = const_cast<ibv_sge*>(pieces.data());
    request.wr.num_sge = static_cast<int>(pieces.size());
    post_ok(link.a.qp.get(), request);
  }
  for (uint32_t i = 0; i < options.max_send_wr; ++i) {
    expect_completion(link.a.send_cq.get(), i, {IBV_WC_SUCCESS});
    const ibv_wc wc = expect_completion(link.b.recv_cq.get(), i, {IBV_WC_SUCCESS});
    expect_equal(wc.byte_len, 8 * pieces.size(), "byte_len");
  }
}

// The most that a device grants is not among its attributes: it is found, and then used.
void inline_data(Lab& lab) {
  const CqPtr cq = make_cq(lab.a());
  uint32_t most = 0;
  for (uint32_t step = 1u << 16; step > 0; step /= 2)
    if (make_qp(lab.a(), cq.get(), {4, 4, 1, 1, most + step})) most += step;
  if (most == 0) throw Skipped("the device has no inline data");
  EndOptions options;
  options.max_inline_bytes = most;
  Ends ends = make_ends(lab, options);
  for (const uint32_t bytes : {most - 1, most}) {
    ends.a.fill(std::byte{7});
    ends.b.fill(std::byte{0});
    post(ends.a, IBV_WR_RDMA_WRITE, 1, ends.a.sge(0, bytes), ends.b, 0, IBV_SEND_INLINE);
    ends.a.fill(std::byte{8});
    expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_bytes({ends.b.memory.data(), bytes}, std::byte{7}, "the target");
    expect_bytes({ends.b.memory.data() + bytes, 64}, std::byte{0}, "what lies behind");
  }
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  must(ibv_query_qp(ends.a.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
  SendRequest request(IBV_WR_SEND, 2, ends.a.sge(0, init.cap.max_inline_data + 1));
  request.wr.send_flags |= IBV_SEND_INLINE;
  expect_errno(post_send(ends.a.qp.get(), request.wr), {EINVAL, ENOMEM},
               "a byte more than max_inline_data");
}

void outstanding_reads(Lab& lab) {
  const int most = lab.a().attr.max_qp_rd_atom;
  const int most_asked = lab.a().attr.max_qp_init_rd_atom;
  if (most > 255 || most_asked > 255) throw Skipped("more than an attribute can say");
  EndOptions options;
  options.rc.max_dest_rd_atomic = static_cast<uint8_t>(most);
  options.rc.max_rd_atomic = static_cast<uint8_t>(most_asked);
  Ends ends = make_ends(lab, options);
  for (int i = 0; i < 8; ++i)
    post(ends.a, IBV_WR_RDMA_READ, static_cast<uint64_t>(i), ends.a.sge(0, 3000), ends.b);
  for (uint64_t i = 0; i < 8; ++i) expect_completion(ends.a.send_cq.get(), i, {IBV_WC_SUCCESS});
  for (const bool asked : {true, false}) {
    if ((asked ? most_asked : most) == 255) continue;
    EndOptions over;
    (asked ? over.rc.max_rd_atomic : over.rc.max_dest_rd_atomic) =
        static_cast<uint8_t>((asked ? most_asked : most) + 1);
    End end = make_end(lab.a(), over);
    to_init(end);
    QpChange to_rtr = change_to_rtr(end, ends.b);
    expect_errno(to_rtr.apply(end.qp.get()), {asked ? 0 : EINVAL}, "max_dest_rd_atomic");
    if (asked)
      expect_errno(change_to_rts(end).apply(end.qp.get()), {EINVAL},
                   "max_rd_atomic over the limit");
  }
}

// On-demand memory need not be there, so that a region of any length can be had.
void longest_region(Lab& lab) {
  const uint64_t most = lab.a().attr.max_mr_size;
  if (most > uint64_t{1} << 46) throw Skipped("as long as a program's addresses");
  const Memory memory(4096);
  const auto make = [&](uint64_t bytes) {
    return register_memory(lab.a().pd.get(), memory.data(), bytes, IBV_ACCESS_ON_DEMAND);
  };
  const MrPtr region = make(most);
  if (!region && errno == EOPNOTSUPP) throw Skipped("the device has no on-demand regions");
  must(region.get(), "ibv_reg_mr of max_mr_size");
  expect_refused(make(most + 1), {EINVAL, ENOMEM}, "ibv_reg_mr over max_mr_size");
}

}  // namespace

std::span<const Row> limit_edge_rows() {
  static constexpr Row kRows[] = {
      {"limits: max_pd", domains},
      {"limits: max_mr", regions},
      {"limits: max_mw", windows},
      {"limits: max_cq", completion_queues},
      {"limits: max_qp", queue_pairs},
      {"limits: max_srq", shared_queues},
      {"limits: max_ah", address_handles},
      {"limits: max_mcast_grp, max_mcast_qp_attach", multicast},
      {"limits: max_dm_size", device_memory},
      {"limits: max_qp_wr, max_sge, max_cqe, max_srq_wr, max_srq_sge", longest_queues},
      {"limits: queues full of requests of max_sge pieces", full_queues},
      {"limits: inline data", inline_data},
      {"limits: max_qp_rd_atom, max_qp_init_rd_atom", outstanding_reads},
      {"limits: max_mr_size", longest_region},
  };
  return kRows;
}

}  // namespace rocemu::e2e
