// Receives that QPs share: SRQs with their events (IBTA vol 1, 10.2.9).
#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

// Two QPs of `b` on one SRQ, each with a peer.
struct Shared {
  SrqPtr srq;
  Ends first, second;
};

Shared make_shared(Lab& lab, uint32_t max_wr = 16) {
  SrqPtr srq = make_srq(lab.b(), max_wr);
  EndOptions there;
  there.srq = srq.get();
  const auto pair = [&] {
    Ends ends{make_end(lab.a(), {}), make_end(lab.b(), there)};
    connect(ends.a, ends.b);
    return ends;
  };
  Ends first = pair();
  Ends second = pair();
  return {std::move(srq), std::move(first), std::move(second)};
}

ibv_srq_attr query(ibv_srq* srq) {
  ibv_srq_attr attr{};
  must(ibv_query_srq(srq, &attr), "ibv_query_srq");
  return attr;
}

// Each receive has a place of its own, by its id.
constexpr uint32_t kPlace = 64;
size_t offset_of(uint64_t id) { return id * kPlace % 65536; }
ibv_sge place_of(const Shared& shared, uint64_t id) {
  return shared.first.b.sge(offset_of(id), kPlace);
}
void post_receive(Shared& shared, uint64_t id) {
  post_srq_recv_ok(shared.srq.get(), id, place_of(shared, id));
}

// The receive's place alone has what is sent; all the others stay as they are.
void send_and_receive(Shared& shared, Ends& ends, uint64_t receive_id) {
  const End& owner = shared.first.b;
  owner.fill(std::byte{0});
  ends.a.fill(std::byte(receive_id % 255 + 1));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, kPlace), ends.b);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  const ibv_wc wc = expect_completion(ends.b.recv_cq.get(), receive_id, {IBV_WC_SUCCESS});
  expect_equal(wc.qp_num, ends.b.qp->qp_num, "qp_num");
  expect_equal(wc.byte_len, kPlace, "byte_len");
  const std::span all{owner.memory.data(), owner.memory.bytes()};
  const size_t at = offset_of(receive_id);
  expect_bytes(all.first(at), std::byte{0}, "what lies before the receive");
  expect_bytes(all.subspan(at, kPlace), std::byte(receive_id % 255 + 1), "the receive");
  expect_bytes(all.subspan(at + kPlace), std::byte{0}, "what lies behind the receive");
}

void in_order_for_all(Lab& lab) {
  Shared shared = make_shared(lab);
  for (uint64_t id = 1; id <= 4; ++id) post_receive(shared, id);
  send_and_receive(shared, shared.first, 1);
  send_and_receive(shared, shared.second, 2);
  send_and_receive(shared, shared.second, 3);
  send_and_receive(shared, shared.first, 4);
  ibv_sge sge = shared.first.b.sge(0, 8);
  expect_errno(post_recv(shared.first.b.qp.get(), 9, {&sge, 1}), {EINVAL},
               "ibv_post_recv to a QP with an SRQ");
}

constexpr uint64_t kPairs = 16, kEach = 3;

// Message i is of pair i % kPairs, lies at this place of its sender, and has bytes of its own.
size_t source_of(uint64_t i) { return 1024 * (i / kPairs); }
std::byte byte_of(uint64_t i) { return std::byte(i + 1); }

// A receive has one of the messages, of each pair in order, but for datagrams, which may overtake
// each other. `seen` has the messages of each pair that were received.
void expect_message(const std::vector<Ends>& all, std::vector<std::vector<uint64_t>>& seen,
                    const ibv_wc& wc) {
  uint64_t pair = 0;
  while (pair < kPairs && all[pair].b.qp->qp_num != wc.qp_num) ++pair;
  if (pair == kPairs) fail("a receive of QP %#x, which is none of them", wc.qp_num);
  const bool datagram = all[pair].b.options.type == IBV_QPT_UD;
  const uint32_t header = datagram ? kGrhBytes : 0;
  expect_equal(wc.byte_len, header + 900, "byte_len");
  const std::byte* const at = all[0].b.memory.data() + 1024 * wc.wr_id + header;
  const uint64_t message = std::to_integer<uint64_t>(*at) - 1;
  if (message >= kPairs * kEach || message % kPairs != pair ||
      std::ranges::find(seen[pair], message) != seen[pair].end())
    fail("QP %#x has received message %llu", wc.qp_num, static_cast<unsigned long long>(message));
  if (!datagram) expect_equal(message, seen[pair].size() * kPairs + pair, "the message");
  seen[pair].push_back(message);
  expect_bytes({at, 900}, byte_of(message), "the receive");
  expect_bytes({at + 900, 1024 - 900 - header}, std::byte{0xee}, "what lies behind it");
}

// All of them send at once, and as there is a receive for each message none is lost, whatever the
// service.
void of_many(Lab& lab, ibv_qp_type type) {
  const SrqPtr srq = make_srq(lab.b(), kPairs * kEach);
  const CqPtr cq(must(ibv_create_cq(lab.b().context.get(), kPairs * kEach, nullptr, nullptr, 0),
                      "ibv_create_cq"));
  const AhPtr ah = type == IBV_QPT_UD ? make_ah(lab.a(), lab.b().gid) : AhPtr();
  EndOptions sending, receiving;
  sending.type = receiving.type = type;
  receiving.srq = srq.get();
  receiving.recv_cq = cq.get();
  std::vector<Ends> all;
  for (uint64_t i = 0; i < kPairs; ++i) {
    all.push_back({make_end(lab.a(), sending), make_end(lab.b(), receiving)});
    connect(all.back().a, all.back().b);
  }
  all[0].b.fill(std::byte{0xee});
  for (uint64_t i = 0; i < kPairs * kEach; ++i) {
    post_srq_recv_ok(srq.get(), i, all[0].b.sge(1024 * i, 1024));
    std::memset(all[i % kPairs].a.memory.data() + source_of(i), std::to_integer<int>(byte_of(i)),
                900);
  }
  for (uint64_t i = 0; i < kPairs * kEach; ++i) {
    Ends& ends = all[i % kPairs];
    SendRequest request(IBV_WR_SEND, i, ends.a.sge(source_of(i), 900));
    if (ah) address(request, ah.get(), ends.b);
    post_ok(ends.a.qp.get(), request);
  }
  // Receives of different QPs complete in any order.
  std::vector<std::vector<uint64_t>> seen(kPairs);
  std::set<uint64_t> completed;
  for (uint64_t i = 0; i < kPairs * kEach; ++i) {
    expect_completion(all[i % kPairs].a.send_cq.get(), i, {IBV_WC_SUCCESS});
    const auto wc = poll_one(cq.get(), kPatience);
    if (!wc) fail("no completion of a receive");
    if (wc->status != IBV_WC_SUCCESS || wc->wr_id >= kPairs * kEach ||
        !completed.insert(wc->wr_id).second)
      fail("a receive's completion: %s", wc_text(*wc).c_str());
    expect_message(all, seen, *wc);
  }
}

void of_many_rc(Lab& lab) { of_many(lab, IBV_QPT_RC); }
void of_many_uc(Lab& lab) { of_many(lab, IBV_QPT_UC); }
void of_many_ud(Lab& lab) { of_many(lab, IBV_QPT_UD); }

void limit_event(Lab& lab) {
  Shared shared = make_shared(lab);
  for (uint64_t id = 1; id <= 4; ++id) post_receive(shared, id);
  set_limit(shared.srq.get(), 3);
  expect_equal(query(shared.srq.get()).srq_limit, 3, "srq_limit");
  send_and_receive(shared, shared.first, 1);  // 3 are left
  send_and_receive(shared, shared.first, 2);
  expect_srq_event(lab.b(), shared.srq.get(), IBV_EVENT_SRQ_LIMIT_REACHED);
  expect_equal(query(shared.srq.get()).srq_limit, 0, "srq_limit after the event");
  send_and_receive(shared, shared.first, 3);
  lab.check_no_events(std::chrono::milliseconds(20));
  ibv_srq_attr attr{};
  attr.srq_limit = query(shared.srq.get()).max_wr + 1;
  expect_errno(ibv_modify_srq(shared.srq.get(), &attr, IBV_SRQ_LIMIT), {EINVAL},
               "a limit over max_wr");
}

void srq_resized(Lab& lab) {
  if ((lab.b().attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0)
    throw Skipped("the device has no IBV_DEVICE_SRQ_RESIZE");
  Shared shared = make_shared(lab, 4);
  ibv_srq* srq = shared.srq.get();
  const auto resize = [srq](uint32_t max_wr) {
    ibv_srq_attr attr{};
    attr.max_wr = max_wr;
    return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
  };
  uint64_t posted = 0;
  const auto fill_up = [&] {
    ibv_sge sge = place_of(shared, posted + 1);
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = posted + 1;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (; ibv_post_srq_recv(srq, &wr, &bad) == 0; sge = place_of(shared, ++wr.wr_id)) ++posted;
    if (bad != &wr) fail("bad_wr is not the request that failed");
  };
  fill_up();
  const uint64_t before = posted;
  must(resize(64), "ibv_modify_srq with IBV_SRQ_MAX_WR");
  if (query(srq).max_wr < 64) fail("max_wr is %u after a resize to 64", query(srq).max_wr);
  fill_up();
  if (posted < 64) fail("only %llu receives fit", static_cast<unsigned long long>(posted));
  expect_errno(resize(static_cast<uint32_t>(before)), {EINVAL}, "fewer than there are receives");
  expect_errno(resize(0), {EINVAL}, "no receives at all");
  expect_errno(resize(static_cast<uint32_t>(lab.b().attr.max_srq_wr) + 1), {EINVAL},
               "more than max_srq_wr");
  for (uint64_t id = 1; id <= posted; ++id)
    send_and_receive(shared, id % 2 == 0 ? shared.first : shared.second, id);
  must(resize(4), "ibv_modify_srq to fewer again");
  post_receive(shared, 1000);
  send_and_receive(shared, shared.first, 1000);
}

// More than the NIC takes over at once, with others' work in between.
void srq_resized_with_many(Lab& lab) {
  if ((lab.b().attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0)
    throw Skipped("the device has no IBV_DEVICE_SRQ_RESIZE");
  const auto most = static_cast<uint32_t>(lab.b().attr.max_srq_wr);
  const uint32_t receives = std::min(most / 2, 2000u);
  Shared shared = make_shared(lab, receives);
  for (uint64_t id = 1; id <= receives; ++id) post_receive(shared, id);
  ibv_srq_attr attr{};
  attr.max_wr = most;
  must(ibv_modify_srq(shared.srq.get(), &attr, IBV_SRQ_MAX_WR),
       "ibv_modify_srq with many receives inside");
  for (const uint64_t id : {1, 2, 3}) send_and_receive(shared, shared.first, id);
}

void empty_srq(Lab& lab) {
  SrqPtr srq = make_srq(lab.b(), 4);
  EndOptions here, there;
  here.rc.rnr_retry = 2;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), here), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  post(ends.a, IBV_WR_SEND, 1, ends.a.sge(0, 8), ends.b);
  expect_completion(ends.a.send_cq.get(), 1, {IBV_WC_RNR_RETRY_EXC_ERR});
  expect_state(ends.a.qp.get(), IBV_QPS_ERR);
  expect_state(ends.b.qp.get(), IBV_QPS_RTS);
}

void last_wqe(Lab& lab) {
  Shared shared = make_shared(lab);
  post_receive(shared, 1);
  must(change_to(IBV_QPS_ERR).apply(shared.first.b.qp.get()), "ibv_modify_qp to ERR");
  expect_qp_event(lab.b(), shared.first.b.qp.get(), IBV_EVENT_QP_LAST_WQE_REACHED);
  send_and_receive(shared, shared.second, 1);  // the receive was not the dead QP's
}

// Class E of IBTA vol 1, 9.9.3: a receive that others could have had is not held back.
void datagram_too_long(Lab& lab) {
  SrqPtr srq = make_srq(lab.b(), 4);
  EndOptions here, there;
  here.type = there.type = IBV_QPT_UD;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), here), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  const AhPtr ah = make_ah(lab.a(), lab.b().gid);
  post_srq_recv_ok(srq.get(), 1, ends.b.sge(0, kGrhBytes + 99));
  post_srq_recv_ok(srq.get(), 2, ends.b.sge(0, kGrhBytes + 100));
  for (const uint64_t id : {10, 11}) {
    SendRequest request(IBV_WR_SEND, id, ends.a.sge(0, 100));
    address(request, ah.get(), ends.b);
    post_ok(ends.a.qp.get(), request);
    expect_completion(ends.a.send_cq.get(), id, {IBV_WC_SUCCESS});
  }
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR});
  expect_completion(ends.b.recv_cq.get(), 2, {IBV_WC_SUCCESS});
}

// Its receives are of its own PD, whichever its QPs have.
void of_another_pd(Lab& lab) {
  const PdPtr pd(must(ibv_alloc_pd(lab.b().context.get()), "ibv_alloc_pd"));
  ibv_srq_init_attr init{};
  init.attr = {16, 1, 0};
  const SrqPtr srq(must(ibv_create_srq(pd.get(), &init), "ibv_create_srq"));
  const Memory memory(4096);
  const MrPtr mr = register_memory(pd.get(), memory.data(), memory.bytes(), IBV_ACCESS_LOCAL_WRITE);
  must(mr.get(), "ibv_reg_mr");
  EndOptions there;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), {}), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  ends.a.fill(std::byte{7});
  for (const uint32_t bytes : {8u, 64u}) {
    std::memset(memory.data(), 0, memory.bytes());
    post_srq_recv_ok(srq.get(), 1, {memory.address(), bytes, mr->lkey});
    post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, bytes), ends.b);
    expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
    expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_bytes({memory.data(), bytes}, std::byte{7}, "the receive");
  }
  post_srq_recv_ok(srq.get(), 2, ends.b.sge(0, 64));
  post(ends.a, IBV_WR_SEND, 11, ends.a.sge(0, 64), ends.b);
  expect_completion(ends.a.send_cq.get(), 11, {IBV_WC_REM_OP_ERR});
  expect_completion(ends.b.recv_cq.get(), 2, {IBV_WC_LOC_PROT_ERR});
}

}  // namespace

std::span<const Row> shared_receive_rows() {
  static constexpr Row kRows[] = {
      {"SRQ: its receives are taken in order by all its QPs", in_order_for_all},
      {"SRQ: of another PD than its QP", of_another_pd},
      {"SRQ: of sixteen RC QPs", of_many_rc},
      {"SRQ: of sixteen UC QPs, none of whose messages is lost", of_many_uc},
      {"SRQ: of sixteen UD QPs, none of whose messages is lost", of_many_ud},
      {"SRQ: the limit event comes once", limit_event},
      {"SRQ: resized with receives inside", srq_resized},
      {"SRQ: resized with many receives inside", srq_resized_with_many},
      {"SRQ: an empty one is RNR retries exceeded for the sender", empty_srq},
      {"SRQ: last WQE reached when its QP fails", last_wqe},
      {"SRQ: a datagram that is too long costs a receive, and no more", datagram_too_long},
  };
  return kRows;
}

}  // namespace rocemu::e2e
