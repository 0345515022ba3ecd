// Memory windows that are used as they should be, and when their use ends (IBTA vol 1, 10.6.7;
// ibv_bind_mw(3)). Wrong bindings are bad_input's.
#include <algorithm>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint64_t kWindowBytes = 4096;

struct Bound {
  Ends ends;
  MrPtr mr;  // of the second end, bindable
  MwPtr mw;
};

Bound make_bound(Lab& lab, ibv_mw_type type, ibv_qp_type service = IBV_QPT_RC) {
  Bound bound{make_ends(lab, service), {}, {}};
  bound.mr = register_memory(lab.b().pd.get(), bound.ends.b.memory.data(),
                             bound.ends.b.memory.bytes(), kEveryRight | IBV_ACCESS_MW_BIND);
  must(bound.mr.get(), "ibv_reg_mr with IBV_ACCESS_MW_BIND");
  bound.mw.reset(ibv_alloc_mw(lab.b().pd.get(), type));
  if (!bound.mw && errno == EOPNOTSUPP) throw Skipped("the device has no such windows");
  must(bound.mw.get(), "ibv_alloc_mw");
  return bound;
}

// By ibv_bind_mw; gives back the key.
uint32_t bind_type_1(Bound& bound, size_t offset, uint64_t bytes, unsigned access) {
  ibv_mw_bind bind{};
  bind.wr_id = 1;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {bound.mr.get(), bound.ends.b.memory.address() + offset, bytes, access};
  must(ibv_bind_mw(bound.ends.b.qp.get(), bound.mw.get(), &bind), "ibv_bind_mw");
  const ibv_wc wc = expect_completion(bound.ends.b.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_equal(wc.opcode, IBV_WC_BIND_MW, "opcode");
  return bound.mw->rkey;
}

// By a request. The window has the new key when it has been executed.
void post_type_2(Bound& bound, uint64_t wr_id, unsigned access, uint64_t address) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw.mw = bound.mw.get();
  wr.bind_mw.rkey = bound.mw->rkey = ibv_inc_rkey(bound.mw->rkey);
  wr.bind_mw.bind_info = {bound.mr.get(), address, kWindowBytes, access};
  must(post_send(bound.ends.b.qp.get(), wr), "ibv_post_send of IBV_WR_BIND_MW");
}

// The same, and waits for it; gives back the key.
uint32_t bind_type_2(Bound& bound, unsigned access, uint64_t address) {
  post_type_2(bound, 1, access, address);
  expect_completion(bound.ends.b.send_cq.get(), 1, {IBV_WC_SUCCESS});
  return bound.mw->rkey;
}

void remote(End& from, ibv_wr_opcode opcode, uint64_t address, uint32_t rkey,
            ibv_wc_status status) {
  SendRequest request(opcode, 2, from.sge(0, 8));
  post_ok(from.qp.get(), request.remote(address, rkey));
  expect_completion(from.send_cq.get(), 2, {status});
}

// By the key, to and from this place of the bound memory.
void write_by(End& from, const End& target, size_t offset, uint32_t rkey) {
  from.set_word(0, 0x1234);
  target.set_word(offset, 0);
  remote(from, IBV_WR_RDMA_WRITE, target.memory.address() + offset, rkey, IBV_WC_SUCCESS);
  expect_equal(target.word(offset), 0x1234, "what was written");
}
void read_by(End& from, const End& source, size_t offset, uint32_t rkey) {
  from.set_word(0, 0);
  source.set_word(offset, 0x5678);
  remote(from, IBV_WR_RDMA_READ, source.memory.address() + offset, rkey, IBV_WC_SUCCESS);
  expect_equal(from.word(0), 0x5678, "what was read");
}

void expect_refused_access(Lab& lab, Ends& ends, ibv_wr_opcode opcode, uint64_t address,
                           uint32_t rkey) {
  remote(ends.a, opcode, address, rkey, IBV_WC_REM_ACCESS_ERR);
  expect_qp_event(lab.b(), ends.b.qp.get(), IBV_EVENT_QP_ACCESS_ERR);
}

void type_1(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_1);
  Ends& ends = bound.ends;
  const uint64_t base = ends.b.memory.address();
  const uint32_t first =
      bind_type_1(bound, 0, kWindowBytes, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  write_by(ends.a, ends.b, 0, first);
  read_by(ends.a, ends.b, kWindowBytes - 8, first);
  // Any QP of the PD may use it.
  Ends others = make_ends(lab, IBV_QPT_RC);
  write_by(others.a, ends.b, 0, first);
  // Bound anew, it has another key, and the old one nothing.
  const uint32_t second = bind_type_1(bound, kWindowBytes, kWindowBytes, IBV_ACCESS_REMOTE_READ);
  if (second == first) fail("a window that was bound anew has its old key");
  read_by(ends.a, ends.b, kWindowBytes, second);
  expect_refused_access(lab, others, IBV_WR_RDMA_READ, base, first);
  expect_refused_access(lab, ends, IBV_WR_RDMA_WRITE, base + kWindowBytes, second);
}

void type_1_unbound(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_1);
  const uint64_t base = bound.ends.b.memory.address();
  const uint32_t key = bind_type_1(bound, 0, kWindowBytes, IBV_ACCESS_REMOTE_WRITE);
  write_by(bound.ends.a, bound.ends.b, 0, key);
  expect_errno(ibv_dereg_mr(bound.mr.get()), {EBUSY}, "deregistering under a window");
  bind_type_1(bound, 0, 0, IBV_ACCESS_REMOTE_WRITE);  // a length of 0 unbinds
  bound.mr.reset();
  expect_refused_access(lab, bound.ends, IBV_WR_RDMA_WRITE, base, key);
}

void type_2(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  const uint64_t base = bound.ends.b.memory.address();
  const uint32_t key = bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE, base);
  write_by(bound.ends.a, bound.ends.b, 0, key);
  ibv_send_wr wr{};
  wr.wr_id = 3;
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = key;
  must(post_send(bound.ends.b.qp.get(), wr), "ibv_post_send of IBV_WR_LOCAL_INV");
  expect_equal(expect_completion(bound.ends.b.send_cq.get(), 3, {IBV_WC_SUCCESS}).opcode,
               IBV_WC_LOCAL_INV, "opcode");
  const uint32_t again = bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE, base);
  write_by(bound.ends.a, bound.ends.b, 0, again);
  expect_refused_access(lab, bound.ends, IBV_WR_RDMA_WRITE, base, key);
}

void type_2_invalidated_by_the_peer(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  Ends& ends = bound.ends;
  const uint64_t base = ends.b.memory.address();
  const uint32_t key = bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE, base);
  write_by(ends.a, ends.b, 0, key);
  post_recv_ok(ends.b.qp.get(), 7, ends.b.sge(8192, 100));
  SendRequest send(IBV_WR_SEND_WITH_INV, 4, ends.a.sge(0, 100));
  send.wr.invalidate_rkey = key;
  post_ok(ends.a.qp.get(), send);
  expect_completion(ends.a.send_cq.get(), 4, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), 7, {IBV_WC_SUCCESS});
  expect_equal(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV, "wc_flags");
  expect_equal(wc.invalidated_rkey, key, "invalidated_rkey");
  expect_refused_access(lab, ends, IBV_WR_RDMA_WRITE, base, key);
}

// The window is the one that is named, and the program owns the low 8 bits of its key (IBTA vol 1,
// 10.6.7.2.6), whatever stands in the others.
void type_2_by_its_object(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  const Ends& ends = bound.ends;
  const MwPtr other(ibv_alloc_mw(lab.b().pd.get(), IBV_MW_TYPE_2));
  must(other.get(), "ibv_alloc_mw");
  const uint32_t own = bound.mw->rkey;
  bound.ends.a.set_word(0, 1);
  for (const uint32_t given : {0x5au, ibv_inc_rkey(other->rkey), own}) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = bound.mw.get();
    wr.bind_mw.rkey = given;
    wr.bind_mw.bind_info = {bound.mr.get(), ends.b.memory.address(), kWindowBytes,
                            IBV_ACCESS_REMOTE_WRITE};
    must(post_send(ends.b.qp.get(), wr), "ibv_post_send of IBV_WR_BIND_MW");
    expect_completion(ends.b.send_cq.get(), 1, {IBV_WC_SUCCESS});
    const uint32_t key = (own & ~0xffu) | (given & 0xffu);
    write_by(bound.ends.a, ends.b, 0, key);
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = key;
    must(post_send(ends.b.qp.get(), wr), "ibv_post_send of IBV_WR_LOCAL_INV");
    expect_completion(ends.b.send_cq.get(), 1, {IBV_WC_SUCCESS});
  }
  expect_refused_access(lab, bound.ends, IBV_WR_RDMA_WRITE, ends.b.memory.address(),
                        ibv_inc_rkey(other->rkey));
}

// A window that was never bound takes every low byte, the one it was made with among them.
void type_2_under_every_key(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bound.mw.reset(ibv_alloc_mw(lab.b().pd.get(), IBV_MW_TYPE_2));
    must(bound.mw.get(), "ibv_alloc_mw");
    bound.mw->rkey = (bound.mw->rkey & ~0xffu) | ((byte - 1) & 0xffu);
    bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE, bound.ends.b.memory.address());
  }
  write_by(bound.ends.a, bound.ends.b, 0, bound.mw->rkey);
}

// 2A or 2B, as the device says: neither is for other QPs than the one it was bound by.
void type_2_of_its_queue_pair_alone(Lab& lab) {
  constexpr unsigned kTypes = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  const unsigned types = lab.b().attr.device_cap_flags & kTypes;
  if (types == 0) throw Skipped("the device has no windows of type 2");
  if (types == kTypes) fail("the device says that its windows are both 2A and 2B");
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  const uint64_t base = bound.ends.b.memory.address();
  const uint32_t key = bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE, base);
  Ends others = make_ends(lab, IBV_QPT_RC);
  expect_refused_access(lab, others, IBV_WR_RDMA_WRITE, base, key);
  write_by(bound.ends.a, bound.ends.b, 0, key);
}

void type_2_zero_based(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2);
  const uint32_t key = bind_type_2(bound, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED,
                                   bound.ends.b.memory.address() + 4096);
  bound.ends.a.set_word(0, 0x1234);
  remote(bound.ends.a, IBV_WR_RDMA_WRITE, 16, key, IBV_WC_SUCCESS);
  expect_equal(bound.ends.b.word(4096 + 16), 0x1234, "the target");
  expect_refused_access(lab, bound.ends, IBV_WR_RDMA_WRITE, kWindowBytes, key);
}

// More requests that send nothing than the NIC executes in a turn, posted together: the CQ shows
// the last of them, though no frame is sent or comes.
void many_at_once(Lab& lab) {
  EndOptions options;
  options.max_send_wr = std::min(200u, static_cast<uint32_t>(lab.b().attr.max_qp_wr));
  End end = make_end(lab.b(), options);
  End peer = make_end(lab.a(), {});
  connect(end, peer);
  const MrPtr mr = register_memory(lab.b().pd.get(), end.memory.data(), end.memory.bytes(),
                                   kEveryRight | IBV_ACCESS_MW_BIND);
  must(mr.get(), "ibv_reg_mr with IBV_ACCESS_MW_BIND");
  const MwPtr mw(ibv_alloc_mw(lab.b().pd.get(), IBV_MW_TYPE_2));
  if (!mw && errno == EOPNOTSUPP) throw Skipped("the device has no such windows");
  must(mw.get(), "ibv_alloc_mw");
  std::vector<ibv_send_wr> requests(options.max_send_wr);
  for (size_t i = 0; i < requests.size(); ++i) {
    ibv_send_wr& wr = requests[i];
    wr.wr_id = i;
    wr.next = i + 1 < requests.size() ? &requests[i + 1] : nullptr;
    wr.send_flags = i + 1 < requests.size() ? 0 : IBV_SEND_SIGNALED;
    if (i % 2 == 0) {
      mw->rkey = ibv_inc_rkey(mw->rkey);
      wr.opcode = IBV_WR_BIND_MW;
      wr.bind_mw.mw = mw.get();
      wr.bind_mw.rkey = mw->rkey;
      wr.bind_mw.bind_info = {mr.get(), end.memory.address(), kWindowBytes, IBV_ACCESS_REMOTE_READ};
    } else {
      wr.opcode = IBV_WR_LOCAL_INV;
      wr.invalidate_rkey = mw->rkey;
    }
  }
  ibv_send_wr* bad = nullptr;
  must(ibv_post_send(end.qp.get(), requests.data(), &bad), "ibv_post_send of bindings");
  expect_completion(end.send_cq.get(), requests.size() - 1, {IBV_WC_SUCCESS});
}

// Behind a WRITE of the same QP, which leaves first.
void over_uc(Lab& lab) {
  Bound bound = make_bound(lab, IBV_MW_TYPE_2, IBV_QPT_UC);
  const Ends& ends = bound.ends;
  post(bound.ends.b, IBV_WR_RDMA_WRITE, 5, ends.b.sge(0, 8), ends.a, 8192, 0);
  post_type_2(bound, 6, IBV_ACCESS_REMOTE_WRITE, ends.b.memory.address());
  for (const uint64_t id : {5, 6}) expect_completion(ends.b.send_cq.get(), id, {IBV_WC_SUCCESS});
  ends.b.set_word(64, 0);
  ends.a.set_word(0, 0x4321);
  remote(bound.ends.a, IBV_WR_RDMA_WRITE, ends.b.memory.address() + 64, bound.mw->rkey,
         IBV_WC_SUCCESS);
  wait_for_word(ends.b, 64, 0x4321);
}

}  // namespace

std::span<const Row> bound_window_rows() {
  static constexpr Row kRows[] = {
      {"windows: type 1, used by any QP, bound anew, with its own rights", type_1},
      {"windows: type 1, unbound by a length of 0", type_1_unbound},
      {"windows: type 2, invalidated and bound anew", type_2},
      {"windows: type 2, invalidated by the peer", type_2_invalidated_by_the_peer},
      {"windows: type 2, by the object, with the low byte of a key", type_2_by_its_object},
      {"windows: type 2, under every low byte", type_2_under_every_key},
      {"windows: type 2, of one QP alone", type_2_of_its_queue_pair_alone},
      {"windows: type 2, zero-based", type_2_zero_based},
      {"windows: type 2, bound and invalidated many times at once", many_at_once},
      {"windows: type 2, over UC", over_uc},
  };
  return kRows;
}

}  // namespace rocemu::e2e
