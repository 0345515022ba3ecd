// Rows about memory that is more than a plain region: memory windows, null regions, device memory,
// on-demand regions, changed registrations. IBTA vol. 1, 10.6.7 and 11.6.2; ibv_bind_mw(3),
// ibv_alloc_dm(3), ibv_advise_mr(3), ibv_rereg_mr(3).
#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr unsigned kBindable = kAllRights | IBV_ACCESS_MW_BIND;

LinkOptions with_access(unsigned access) {
  LinkOptions options;
  options.memory_access = access;
  return options;
}

MwPtr make_window(const LinkEnd& end, ibv_mw_type type) {
  return MwPtr(must(ibv_alloc_mw(end.device->pd.get(), type), "ibv_alloc_mw"));
}

ibv_send_wr binding(ibv_mw* mw, uint32_t rkey, ibv_mr* mr, uint64_t address, uint64_t length) {
  ibv_send_wr wr{};
  wr.wr_id = 5;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = {mr, address, length, IBV_ACCESS_REMOTE_WRITE};
  return wr;
}

void bind_ok(const LinkEnd& end, ibv_mw* mw, uint32_t rkey) {
  ibv_send_wr wr = binding(mw, rkey, end.mr.get(), end.memory.address(), 4096);
  expect_errno(post_send(end.qp.get(), wr), {0}, "posting a binding");
  const ibv_wc wc = expect_completion(end.send_cq.get(), 5, {IBV_WC_SUCCESS});
  if (wc.opcode != IBV_WC_BIND_MW) fail("the completion of a binding has opcode %d", wc.opcode);
}

void expect_bind_error(const LinkEnd& end, ibv_send_wr wr) {
  expect_errno(post_send(end.qp.get(), wr), {0}, "posting a binding");
  expect_completion(end.send_cq.get(), 5, {IBV_WC_MW_BIND_ERR});
  expect_state(end.qp.get(), IBV_QPS_ERR);
}

void bound_beyond_the_region(Lab& lab) {
  const Link link = lab.make_link(with_access(kBindable));
  const MwPtr mw = make_window(link.b, IBV_MW_TYPE_2);
  expect_bind_error(link.b, binding(mw.get(), ibv_inc_rkey(mw->rkey), link.b.mr.get(),
                                    link.b.memory.address() + 1, link.b.memory.bytes()));
}

void bound_to_a_region_without_the_right(Lab& lab) {
  const Link link = lab.make_link(with_access(kAllRights));
  const MwPtr mw = make_window(link.b, IBV_MW_TYPE_2);
  expect_bind_error(link.b, binding(mw.get(), ibv_inc_rkey(mw->rkey), link.b.mr.get(),
                                    link.b.memory.address(), 16));
}

void bound_twice(Lab& lab) {
  const Link link = lab.make_link(with_access(kBindable));
  const MwPtr mw = make_window(link.b, IBV_MW_TYPE_2);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  bind_ok(link.b, mw.get(), key);
  expect_errno(ibv_dereg_mr(link.b.mr.get()), {EBUSY}, "deregistering under a window");
  expect_bind_error(
      link.b, binding(mw.get(), ibv_inc_rkey(key), link.b.mr.get(), link.b.memory.address(), 16));
}

void other_types_than_the_call_takes(Lab& lab) {
  const Link link = lab.make_link(with_access(kBindable));
  const MwPtr type_1 = make_window(link.b, IBV_MW_TYPE_1);
  const MwPtr type_2 = make_window(link.b, IBV_MW_TYPE_2);
  ibv_mw_bind bind{};
  bind.bind_info = {link.b.mr.get(), link.b.memory.address(), 16, IBV_ACCESS_REMOTE_WRITE};
  expect_errno(ibv_bind_mw(link.b.qp.get(), type_2.get(), &bind), {EINVAL}, "ibv_bind_mw, type 2");
  ibv_send_wr wr = binding(type_1.get(), ibv_inc_rkey(type_1->rkey), link.b.mr.get(),
                           link.b.memory.address(), 16);
  expect_errno(post_send(link.b.qp.get(), wr), {EINVAL}, "IBV_WR_BIND_MW, type 1");
}

void written_beside_the_window(Lab& lab) {
  const Link link = lab.make_link(with_access(kBindable));
  const MwPtr mw = make_window(link.b, IBV_MW_TYPE_2);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  bind_ok(link.b, mw.get(), key);
  SendRequest inside(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, 4096));
  post_ok(link.a.qp.get(), inside.remote(link.b.memory.address(), key));
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  SendRequest beside(IBV_WR_RDMA_WRITE, 2, link.a.sge(0, 4096));
  post_ok(link.a.qp.get(), beside.remote(link.b.memory.address() + 1, key));
  expect_completion(link.a.send_cq.get(), 2, {IBV_WC_REM_ACCESS_ERR});
  expect_qp_event(lab.b(), link.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void written_by_another_queue_pair(Lab& lab) {
  const Link bound = lab.make_link(with_access(kBindable));
  const Link other = lab.make_link();
  const MwPtr mw = make_window(bound.b, IBV_MW_TYPE_2);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  bind_ok(bound.b, mw.get(), key);
  SendRequest request(IBV_WR_RDMA_WRITE, 1, other.a.sge(0, 16));
  post_ok(other.a.qp.get(), request.remote(bound.b.memory.address(), key));
  expect_completion(other.a.send_cq.get(), 1, {IBV_WC_REM_ACCESS_ERR});
  expect_qp_event(lab.b(), other.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void invalidated_what_is_no_window(Lab& lab) {
  const Link link = lab.make_link();
  ibv_send_wr wr{};
  wr.wr_id = 6;
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = link.a.mr->rkey;
  expect_errno(post_send(link.a.qp.get(), wr), {0}, "posting a local invalidate");
  expect_completion(link.a.send_cq.get(), 6, {IBV_WC_MW_BIND_ERR});
  expect_state(link.a.qp.get(), IBV_QPS_ERR);
}

void peer_invalidates_what_is_no_window(Lab& lab) {
  const Link link = lab.make_link();
  post_recv_ok(link.b.qp.get(), 21, link.b.sge(0, 64));
  SendRequest request(IBV_WR_SEND_WITH_INV, 1, link.a.sge(0, 16));
  request.wr.invalidate_rkey = link.b.mr->rkey;
  post_ok(link.a.qp.get(), request);
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR});
  expect_completion(link.b.recv_cq.get(), 21, {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_QP_OP_ERR});
  lab.check_no_events();  // the receive said so
}

void peer_invalidates_a_window(Lab& lab) {
  const Link link = lab.make_link(with_access(kBindable));
  const MwPtr mw = make_window(link.b, IBV_MW_TYPE_2);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  bind_ok(link.b, mw.get(), key);
  post_recv_ok(link.b.qp.get(), 21, link.b.sge(8192, 64));
  SendRequest request(IBV_WR_SEND_WITH_INV, 1, link.a.sge(0, 16));
  request.wr.invalidate_rkey = key;
  post_ok(link.a.qp.get(), request);
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(link.b.recv_cq.get(), 21, {IBV_WC_SUCCESS});
  if ((wc.wc_flags & IBV_WC_WITH_INV) == 0 || wc.invalidated_rkey != key) {
    fail("the receive does not tell the key that was invalidated");
  }
  SendRequest write(IBV_WR_RDMA_WRITE, 2, link.a.sge(0, 16));
  post_ok(link.a.qp.get(), write.remote(link.b.memory.address(), key));
  expect_completion(link.a.send_cq.get(), 2, {IBV_WC_REM_ACCESS_ERR});
  expect_qp_event(lab.b(), link.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void more_windows_than_there_are(Lab& lab) {
  std::vector<MwPtr> windows;
  const int most = lab.a().attr.max_mw;
  if (most > 10000) throw Skipped("the device has more windows than a test wants to make");
  for (int i = 0; i < most; ++i) {
    windows.emplace_back(must(ibv_alloc_mw(lab.a().pd.get(), IBV_MW_TYPE_1), "ibv_alloc_mw"));
  }
  expect_refused(MwPtr(ibv_alloc_mw(lab.a().pd.get(), IBV_MW_TYPE_1)), {ENOMEM},
                 "ibv_alloc_mw over max_mw");
}

void null_region(Lab& lab) {
  const Link link = lab.make_link();
  const MrPtr nothing_a(must(ibv_alloc_null_mr(lab.a().pd.get()), "ibv_alloc_null_mr"));
  const MrPtr nothing_b(must(ibv_alloc_null_mr(lab.b().pd.get()), "ibv_alloc_null_mr"));
  std::memset(link.b.memory.data(), 7, link.b.memory.bytes());
  // Zeroes come out of it ...
  SendRequest from_nothing(IBV_WR_RDMA_WRITE, 1, {0x1234, 6000, nothing_a->lkey});
  post_ok(link.a.qp.get(), from_nothing.remote(link.b.memory.address(), link.b.mr->rkey));
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_bytes({link.b.memory.data(), 6000}, std::byte{0}, "what a null region sent");
  // ... and what goes in is lost.
  post_recv_ok(link.b.qp.get(), 21, {0, 6000, nothing_b->lkey});
  SendRequest into_nothing(IBV_WR_SEND, 2, link.a.sge(0, 6000));
  post_ok(link.a.qp.get(), into_nothing);
  expect_completion(link.a.send_cq.get(), 2, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(link.b.recv_cq.get(), 21, {IBV_WC_SUCCESS});
  if (wc.byte_len != 6000) fail("a receive into a null region says %u bytes", wc.byte_len);
}

void null_region_from_afar(Lab& lab) {
  const Link link = lab.make_link();
  const MrPtr nothing(must(ibv_alloc_null_mr(lab.b().pd.get()), "ibv_alloc_null_mr"));
  SendRequest request(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, 16));
  post_ok(link.a.qp.get(), request.remote(0, nothing->lkey));
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_REM_ACCESS_ERR});
  expect_qp_event(lab.b(), link.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void device_memory_out_of_range(Lab& lab) {
  ibv_alloc_dm_attr attr{};
  attr.length = 4096;
  const DmPtr dm(must(ibv_alloc_dm(lab.a().context.get(), &attr), "ibv_alloc_dm"));
  char bytes[64] = {};
  expect_errno(ibv_memcpy_to_dm(dm.get(), 4096, bytes, 4), {EFAULT, EINVAL}, "a copy to the end");
  expect_errno(ibv_memcpy_to_dm(dm.get(), ~uint64_t{3}, bytes, 8), {EFAULT, EINVAL},
               "a copy to an offset that wraps round");
  expect_errno(ibv_memcpy_from_dm(bytes, dm.get(), 2, 4), {EINVAL}, "a copy from an odd offset");
  constexpr unsigned kAccess = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
  expect_refused(MrPtr(ibv_reg_dm_mr(lab.a().pd.get(), dm.get(), 4000, 100, kAccess)), {EINVAL},
                 "ibv_reg_dm_mr beyond the end");
  expect_refused(MrPtr(ibv_reg_dm_mr(lab.a().pd.get(), dm.get(), 0, 100, IBV_ACCESS_LOCAL_WRITE)),
                 {EINVAL}, "ibv_reg_dm_mr without IBV_ACCESS_ZERO_BASED");
  const MrPtr mr(must(ibv_reg_dm_mr(lab.a().pd.get(), dm.get(), 0, 100, kAccess), "ibv_reg_dm_mr"));
  expect_errno(ibv_free_dm(dm.get()), {EBUSY}, "ibv_free_dm under a region");
  attr.length = ~size_t{0};
  expect_refused(DmPtr(ibv_alloc_dm(lab.a().context.get(), &attr)), {EINVAL, ENOMEM},
                 "ibv_alloc_dm of all there is");
}

void advice_about_other_memory(Lab& lab) {
  const Link link = lab.make_link();
  const auto advise = [&](ibv_sge sge, ibv_advise_mr_advice advice) {
    return ibv_advise_mr(link.a.device->pd.get(), advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
  };
  expect_errno(advise(link.a.sge(0, 16), IBV_ADVISE_MR_ADVICE_PREFETCH), {ENOENT, EINVAL},
               "advice about a region that is not on-demand");
  const MrPtr odp =
      register_memory(link.a.device->pd.get(), link.a.memory.data(), 4096, IBV_ACCESS_ON_DEMAND);
  const ibv_sge inside{link.a.memory.address(), 4096, odp->lkey};
  const ibv_sge beyond{link.a.memory.address(), 4097, odp->lkey};
  expect_errno(advise(inside, IBV_ADVISE_MR_ADVICE_PREFETCH), {0}, "advice");
  expect_errno(advise(inside, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE), {EPERM},
               "advice to write what may not be written");
  const PdPtr other(must(ibv_alloc_pd(link.a.device->context.get()), "ibv_alloc_pd"));
  ibv_sge again = inside;
  expect_errno(ibv_advise_mr(other.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &again, 1), {EPERM},
               "advice about another PD's region");
  expect_errno(advise(beyond, IBV_ADVISE_MR_ADVICE_PREFETCH), {EFAULT}, "advice beyond the end");
  expect_errno(advise(inside, static_cast<ibv_advise_mr_advice>(77)), {EOPNOTSUPP, EINVAL},
               "unknown advice");
}

void registered_anew_with_nonsense(Lab& lab) {
  const Link link = lab.make_link();
  const int none = ibv_rereg_mr(link.a.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                IBV_ACCESS_REMOTE_WRITE);
  if (none != IBV_REREG_MR_ERR_CMD) fail("ibv_rereg_mr with bad access flags returns %d", none);
  const int gone = ibv_rereg_mr(link.a.mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                                reinterpret_cast<void*>(0x1000), 4096, 0);
  if (gone != IBV_REREG_MR_ERR_CMD && gone != IBV_REREG_MR_ERR_DONT_FORK_NEW)
    fail("ibv_rereg_mr of what is not mapped returns %d", gone);
  // As it was.
  post_recv_ok(link.b.qp.get(), 21, link.b.sge(0, 64));
  SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, 64));
  post_ok(link.a.qp.get(), request);
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_completion(link.b.recv_cq.get(), 21, {IBV_WC_SUCCESS});
}

void resized_with_completions_inside(Lab& lab) {
  const Link link = lab.make_link();
  constexpr uint64_t kMessages = 8;
  for (uint64_t i = 0; i < kMessages; ++i) {
    post_recv_ok(link.b.qp.get(), i, link.b.sge(0, 64));
    SendRequest request(IBV_WR_SEND, i, link.a.sge(0, 64));
    post_ok(link.a.qp.get(), request);
    expect_completion(link.a.send_cq.get(), i, {IBV_WC_SUCCESS});
  }
  expect_errno(ibv_resize_cq(link.b.recv_cq.get(), 4), {EINVAL, EBUSY, ENOMEM},
               "ibv_resize_cq to less than it holds");
  expect_errno(ibv_resize_cq(link.b.recv_cq.get(), 0), {EINVAL}, "ibv_resize_cq to nothing");
  for (const int cqe : {1000, 10}) {
    expect_errno(ibv_resize_cq(link.b.recv_cq.get(), cqe), {0}, "ibv_resize_cq");
    if (link.b.recv_cq->cqe < cqe) fail("ibv_resize_cq gives %d entries", link.b.recv_cq->cqe);
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    expect_completion(link.b.recv_cq.get(), i, {IBV_WC_SUCCESS});
  }
  expect_no_completion(link.b.recv_cq.get());
}

}  // namespace

std::span<const Row> window_rows() {
  static constexpr Row kRows[] = {
      {"a window bound beyond its region", bound_beyond_the_region},
      {"a window bound to a region without IBV_ACCESS_MW_BIND",
       bound_to_a_region_without_the_right},
      {"a window of type 2 bound twice", bound_twice},
      {"windows bound by the call for the other type", other_types_than_the_call_takes},
      {"WRITE beside a window", written_beside_the_window},
      {"WRITE through another QP's window", written_by_another_queue_pair},
      {"local invalidate of a plain region", invalidated_what_is_no_window},
      {"SEND with invalidate of a plain region", peer_invalidates_what_is_no_window},
      {"SEND with invalidate of a window (allowed)", peer_invalidates_a_window},
      {"max_mw windows, and one more", more_windows_than_there_are},
      {"null regions as source and target (allowed)", null_region},
      {"WRITE to a null region", null_region_from_afar},
      {"device memory: ranges, regions, sizes", device_memory_out_of_range},
      {"advice about memory that is not on-demand", advice_about_other_memory},
      {"ibv_rereg_mr with what ibv_reg_mr refuses", registered_anew_with_nonsense},
      {"ibv_resize_cq with completions inside", resized_with_completions_inside},
  };
  return kRows;
}

}  // namespace rocemu::e2e
