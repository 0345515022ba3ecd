// Tag-matching SRQs (ibv_create_srq_ex(3), ibv_post_srq_ops(3), rdma-core's tag_matching.md): what
// is matched, what is not, and what the CQ says of it.
#include <infiniband/tm_types.h>

#include <cstring>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kHeader = sizeof(ibv_tmh);
constexpr uint32_t kOffer = kHeader + sizeof(ibv_rvh);
constexpr unsigned kOfMatch = IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID | IBV_WC_TM_SYNC_REQ;

using ExtendedCqPtr = std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>>;

// A sender at `a`; at `b` a tag-matching SRQ with a CQ of its own.
struct Tagged {
  ExtendedCqPtr cq;
  SrqPtr srq;
  Ends ends;
};

ibv_tm_caps caps_of(const Device& device) {
  ibv_device_attr_ex attr{};
  must(ibv_query_device_ex(device.context.get(), nullptr, &attr), "ibv_query_device_ex");
  if ((attr.tm_caps.flags & IBV_TM_CAP_RC) == 0) throw Skipped("the device matches no tags");
  return attr.tm_caps;
}

// The SRQ's PD may be another one than the QP's.
Tagged make_tagged(Lab& lab, uint32_t max_tags = 8, ibv_pd* of_queue = nullptr) {
  caps_of(lab.b());
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 64;
  cq_init.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_TM_INFO;
  ibv_context* const context = lab.b().context.get();
  ExtendedCqPtr cq(ibv_cq_ex_to_cq(must(ibv_create_cq_ex(context, &cq_init), "ibv_create_cq_ex")));
  ibv_srq_init_attr_ex init{};
  init.attr = {16, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  init.srq_type = IBV_SRQT_TM;
  init.pd = of_queue != nullptr ? of_queue : lab.b().pd.get();
  init.cq = cq.get();
  init.tm_cap = {max_tags, 8};
  SrqPtr srq(must(ibv_create_srq_ex(context, &init), "ibv_create_srq_ex of tag matching"));
  EndOptions there;
  there.srq = srq.get();
  Ends ends{make_end(lab.a(), {}), make_end(lab.b(), there)};
  connect(ends.a, ends.b);
  return {std::move(cq), std::move(srq), std::move(ends)};
}

int post_op(Tagged& tagged, ibv_ops_wr& op) {
  ibv_ops_wr* bad = nullptr;
  return ibv_post_srq_ops(tagged.srq.get(), &op, &bad);
}

ibv_ops_wr adding(ibv_sge& sge, uint64_t id, uint64_t tag, uint64_t mask = ~uint64_t{0}) {
  ibv_ops_wr op{};
  op.wr_id = 1000 + id;
  op.opcode = IBV_WR_TAG_ADD;
  op.tm.add.recv_wr_id = id;
  op.tm.add.sg_list = &sge;
  op.tm.add.num_sge = 1;
  op.tm.add.tag = tag;
  op.tm.add.mask = mask;
  return op;
}

uint32_t add(Tagged& tagged, ibv_sge sge, uint64_t id, uint64_t tag, uint64_t mask = ~uint64_t{0}) {
  ibv_ops_wr op = adding(sge, id, tag, mask);
  must(post_op(tagged, op), "IBV_WR_TAG_ADD");
  return op.tm.handle;
}

struct Matched {
  ibv_wc_opcode opcode;
  ibv_wc_status status;
  unsigned flags;
  uint32_t byte_len;
  ibv_wc_tm_info info;
};

Matched expect_matched(Tagged& tagged, uint64_t id) {
  ibv_cq_ex* const cq = reinterpret_cast<ibv_cq_ex*>(tagged.cq.get());
  ibv_poll_cq_attr attr{};
  const auto deadline = Clock::now() + kPatience;
  int rc;
  while ((rc = ibv_start_poll(cq, &attr)) == ENOENT)
    if (Clock::now() > deadline) fail("no completion came");
  must(rc, "ibv_start_poll");
  Matched matched{ibv_wc_read_opcode(cq),
                  cq->status,
                  ibv_wc_read_wc_flags(cq) & kOfMatch,
                  ibv_wc_read_byte_len(cq),
                  {}};
  ibv_wc_read_tm_info(cq, &matched.info);
  const uint64_t is = cq->wr_id;
  ibv_end_poll(cq);
  expect_equal(is, id, "wr_id");
  return matched;
}

void expect_matched(Tagged& tagged, uint64_t id, ibv_wc_opcode opcode, unsigned flags,
                    uint64_t tag = 0, uint32_t context = 0) {
  const Matched is = expect_matched(tagged, id);
  expect_equal(is.status, IBV_WC_SUCCESS, "status");
  expect_equal(is.opcode, opcode, "opcode");
  expect_equal(is.flags, flags, "wc_flags");
  expect_equal(is.info.tag, tag, "tag");
  expect_equal(is.info.priv, context, "priv");
}

// Lays a message with this header at the beginning of the sender's memory.
void write_header(const Tagged& tagged, ibv_tmh_op opcode, uint64_t tag, uint32_t context) {
  const ibv_tmh header{static_cast<uint8_t>(opcode), {}, context, htobe64(tag)};
  std::memcpy(tagged.ends.a.memory.data(), &header, sizeof(header));
}

void send_tagged(Tagged& tagged, ibv_tmh_op opcode, uint64_t tag, uint32_t bytes) {
  write_header(tagged, opcode, tag, 0x77);
  post(tagged.ends.a, IBV_WR_SEND, 1, tagged.ends.a.sge(0, bytes), tagged.ends.b);
  expect_completion(tagged.ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
}

void eager(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  End& b = tagged.ends.b;
  tagged.ends.a.fill(std::byte{7});
  add(tagged, b.sge(0, 100), 1, 0x50, 0xf0);
  add(tagged, b.sge(4096, 5000), 2, 0x61);
  send_tagged(tagged, IBV_TMH_EAGER, 0x61, kHeader + 5000);
  expect_matched(tagged, 2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 0x61, 0x77);
  expect_matched(tagged, 2, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
  expect_bytes({b.memory.data() + 4096, 5000}, std::byte{7}, "a long message");
  send_tagged(tagged, IBV_TMH_EAGER, 0x55, kHeader + 10);
  expect_matched(tagged, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 0x55, 0x77);
  expect_bytes({b.memory.data(), 10}, std::byte{7}, "a short message");
}

void unexpected(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  End& b = tagged.ends.b;
  for (const uint64_t id : {11, 12}) post_srq_recv_ok(tagged.srq.get(), id, b.sge(0, 100));
  send_tagged(tagged, IBV_TMH_EAGER, 5, kHeader + 8);
  expect_matched(tagged, 11, IBV_WC_TM_RECV, 0);
  expect_equal(std::to_integer<unsigned>(b.memory.data()[0]), IBV_TMH_EAGER, "the header's opcode");
  send_tagged(tagged, IBV_TMH_NO_TAG, 5, kHeader + 8);
  expect_matched(tagged, 12, IBV_WC_TM_NO_TAG, 0);

  // Nothing is matched that was added before the program knew of the message.
  ibv_sge sge = b.sge(4096, 100);
  ibv_ops_wr op = adding(sge, 3, 5);
  op.flags = IBV_OPS_SIGNALED;
  must(post_op(tagged, op), "IBV_WR_TAG_ADD");
  expect_matched(tagged, 1003, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
  post_srq_recv_ok(tagged.srq.get(), 13, b.sge(0, 100));
  send_tagged(tagged, IBV_TMH_EAGER, 5, kHeader + 8);
  expect_matched(tagged, 13, IBV_WC_TM_RECV, 0);
  ibv_ops_wr sync{};
  sync.wr_id = 9;
  sync.opcode = IBV_WR_TAG_SYNC;
  sync.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
  sync.tm.unexpected_cnt = 2;
  must(post_op(tagged, sync), "IBV_WR_TAG_SYNC");
  expect_matched(tagged, 9, IBV_WC_TM_SYNC, 0);
  send_tagged(tagged, IBV_TMH_EAGER, 5, kHeader + 8);
  expect_matched(tagged, 3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 5, 0x77);
}

void write_offer(const Tagged& tagged, uint64_t tag, uint32_t bytes) {
  write_header(tagged, IBV_TMH_RNDV, tag, 0x77);
  const End& a = tagged.ends.a;
  const ibv_rvh offer{htobe64(a.memory.address() + 8192), htobe32(a.mr->rkey), htobe32(bytes)};
  std::memcpy(a.memory.data() + kHeader, &offer, sizeof(offer));
}

void send_offer(Tagged& tagged, uint64_t tag, uint32_t bytes) {
  write_offer(tagged, tag, bytes);
  post(tagged.ends.a, IBV_WR_SEND, 1, tagged.ends.a.sge(0, kOffer), tagged.ends.b);
  expect_completion(tagged.ends.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
}

// The device reads what is offered, and says so to the peer.
void rendezvous(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  End& a = tagged.ends.a;
  End& b = tagged.ends.b;
  a.fill(std::byte{9});
  for (uint64_t id = 1; id <= 3; ++id) {
    add(tagged, b.sge(0, 20000), id, id);
    post_recv_ok(a.qp.get(), 20 + id, a.sge(4096, 100));
    send_offer(tagged, id, 20000);
    expect_matched(tagged, id, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, id, 0x77);
    expect_matched(tagged, id, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    expect_bytes({b.memory.data(), 20000}, std::byte{9}, "what was offered");
    const ibv_wc told = expect_completion(a.recv_cq.get(), 20 + id, {IBV_WC_SUCCESS});
    expect_equal(told.byte_len, kOffer, "byte_len");
    write_header(tagged, IBV_TMH_FIN, id, 0x77);
    if (std::memcmp(a.memory.data() + 4096, a.memory.data(), kOffer) != 0)
      fail("the peer is told of something else");
    // The program's own requests go on beside it.
    post(b, IBV_WR_SEND, 30, b.sge(0, 0), a);
    post_recv_ok(a.qp.get(), 31, a.sge(4096, 100));
    expect_completion(b.send_cq.get(), 30, {IBV_WC_SUCCESS});
    expect_completion(a.recv_cq.get(), 31, {IBV_WC_SUCCESS});
  }
}

void rendezvous_into_the_queues_domain(Lab& lab) {
  const PdPtr pd(must(ibv_alloc_pd(lab.b().context.get()), "ibv_alloc_pd"));
  const Memory memory(20000);
  const MrPtr mr = register_memory(pd.get(), memory.data(), memory.bytes(), IBV_ACCESS_LOCAL_WRITE);
  Tagged tagged = make_tagged(lab, 8, pd.get());
  tagged.ends.a.fill(std::byte{9});
  ibv_sge sge{memory.address(), 20000, mr->lkey};
  add(tagged, sge, 1, 5);
  post_recv_ok(tagged.ends.a.qp.get(), 21, tagged.ends.a.sge(4096, 100));
  send_offer(tagged, 5, 20000);
  expect_matched(tagged, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 5, 0x77);
  expect_matched(tagged, 1, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
  expect_bytes({memory.data(), 20000}, std::byte{9}, "what was offered");
  // The program's own requests are of the QP's domain, as before.
  for (uint64_t id = 0; id < 40; ++id) {
    post_recv_ok(tagged.ends.a.qp.get(), id, tagged.ends.a.sge(4096, 100));
    post(tagged.ends.b, IBV_WR_SEND, id, tagged.ends.b.sge(0, 8), tagged.ends.a);
    expect_completion(tagged.ends.b.send_cq.get(), id, {IBV_WC_SUCCESS});
  }
}

void too_long_an_offer(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  add(tagged, tagged.ends.b.sge(0, 100), 1, 5);
  send_offer(tagged, 5, 101);
  const Matched is = expect_matched(tagged, 1);
  expect_equal(is.status, IBV_WC_TM_RNDV_INCOMPLETE, "status");
  if (std::memcmp(tagged.ends.b.memory.data(), tagged.ends.a.memory.data(), kOffer) != 0)
    fail("the headers are not in the buffer");
  expect_state(tagged.ends.b.qp.get(), IBV_QPS_RTS);
}

void refused_offer(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  add(tagged, tagged.ends.b.sge(0, 100), 1, 5);
  write_offer(tagged, 5, 100);
  tagged.ends.a.memory.data()[kHeader + 8] ^= std::byte{1};  // of the rkey
  post(tagged.ends.a, IBV_WR_SEND, 1, tagged.ends.a.sge(0, kOffer), tagged.ends.b);
  expect_matched(tagged, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 5, 0x77);
  expect_equal(expect_matched(tagged, 1).status, IBV_WC_REM_ACCESS_ERR, "status");
  expect_state(tagged.ends.b.qp.get(), IBV_QPS_ERR);
  expect_no_completion(tagged.ends.b.send_cq.get());
}

// Peers may send what they like: what is no header of tag matching is for the program.
void odd_headers(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  End& b = tagged.ends.b;
  add(tagged, b.sge(0, 8192), 1, 5);
  uint64_t id = 20;
  const auto send_odd = [&](unsigned opcode, uint32_t bytes, ibv_wc_opcode due) {
    post_srq_recv_ok(tagged.srq.get(), ++id, b.sge(8192, 8192));
    send_tagged(tagged, static_cast<ibv_tmh_op>(opcode), 5, bytes);
    expect_matched(tagged, id, due, 0);
  };
  send_odd(IBV_TMH_EAGER, 0, IBV_WC_TM_NO_TAG);
  send_odd(IBV_TMH_EAGER, kHeader - 1, IBV_WC_TM_NO_TAG);
  send_odd(IBV_TMH_FIN, kOffer, IBV_WC_TM_NO_TAG);
  send_odd(99, kHeader, IBV_WC_TM_NO_TAG);
  send_odd(IBV_TMH_RNDV, kOffer - 1, IBV_WC_TM_RECV);
  send_odd(IBV_TMH_RNDV, 5000, IBV_WC_TM_RECV);
  send_tagged(tagged, IBV_TMH_EAGER, 5, kHeader);
  expect_matched(tagged, 1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID, 5, 0x77);
}

void removed(Lab& lab) {
  Tagged tagged = make_tagged(lab);
  const uint32_t handle = add(tagged, tagged.ends.b.sge(0, 100), 1, 5);
  ibv_ops_wr op{};
  op.wr_id = 50;
  op.opcode = IBV_WR_TAG_DEL;
  op.flags = IBV_OPS_SIGNALED;
  op.tm.handle = handle;
  must(post_op(tagged, op), "IBV_WR_TAG_DEL");
  expect_matched(tagged, 50, IBV_WC_TM_DEL, 0);
  must(post_op(tagged, op), "IBV_WR_TAG_DEL of what has gone");
  expect_equal(expect_matched(tagged, 50).status, IBV_WC_TM_ERR, "status");
}

void wrong_operations(Lab& lab) {
  Tagged tagged = make_tagged(lab, 2);
  ibv_sge sge = tagged.ends.b.sge(0, 100);
  const auto expect_invalid = [&](const char* what, auto spoil) {
    ibv_ops_wr op = adding(sge, 1, 5);
    spoil(op);
    expect_errno(post_op(tagged, op), {EINVAL}, what);
  };
  expect_invalid("an opcode",
                 [](ibv_ops_wr& op) { op.opcode = static_cast<ibv_ops_wr_opcode>(9); });
  expect_invalid("flags", [](ibv_ops_wr& op) { op.flags = 64; });
  expect_invalid("num_sge", [](ibv_ops_wr& op) { op.tm.add.num_sge = 99; });
  expect_invalid("num_sge", [](ibv_ops_wr& op) { op.tm.add.num_sge = -1; });
  add(tagged, sge, 1, 5);
  add(tagged, sge, 2, 5);
  ibv_ops_wr op = adding(sge, 3, 5);
  expect_errno(post_op(tagged, op), {ENOMEM}, "more tags than there may be");
  const SrqPtr plain = make_srq(lab.b(), 4);
  ibv_ops_wr* bad = nullptr;
  expect_errno(ibv_post_srq_ops(plain.get(), &op, &bad), {EINVAL}, "an SRQ without tags");
  if (bad != &op) fail("bad_wr is another one");

  ibv_srq_init_attr_ex init{};
  init.attr = {16, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  init.srq_type = IBV_SRQT_TM;
  init.pd = lab.b().pd.get();
  init.cq = tagged.cq.get();
  for (const uint32_t tags : {0u, caps_of(lab.b()).max_num_tags + 1}) {
    init.tm_cap = {tags, 8};
    expect_refused(SrqPtr(ibv_create_srq_ex(lab.b().context.get(), &init)), {EINVAL},
                   "max_num_tags");
  }
}

}  // namespace

std::span<const Row> tag_matching_rows() {
  static constexpr Row kRows[] = {
      {"tags: eager messages of one and of many packets", eager},
      {"tags: unexpected messages, and those without a tag", unexpected},
      {"tags: rendezvous, read and told of", rendezvous},
      {"tags: rendezvous into memory of the SRQ's domain", rendezvous_into_the_queues_domain},
      {"tags: rendezvous, longer than the buffer", too_long_an_offer},
      {"tags: rendezvous, with a wrong key", refused_offer},
      {"tags: headers that are none", odd_headers},
      {"tags: buffers that are taken back", removed},
      {"tags: wrong operations are refused", wrong_operations},
  };
  return kRows;
}

}  // namespace rocemu::e2e
