// Rows of bad input about queues: requests that a queue refuses at once (errno and bad_wr, man
// ibv_post_send and ibv_post_recv), queues that are full, and a completion queue that overruns.
#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

// A chain of a good request and a bad one: the bad one is named, the good one is carried out.
void expect_second_refused(Link& link, SendRequest& bad, std::initializer_list<int> errnos,
                           const char* what) {
  std::memset(link.a.memory.data(), 5, 64);
  std::memset(link.b.memory.data(), 0, 64);
  SendRequest good(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, 64));
  good.remote(link.b.memory.address(), link.b.mr->rkey);
  bad.remote(link.b.memory.address(), link.b.mr->rkey);
  good.wr.next = &bad.wr;
  ibv_send_wr* at = nullptr;
  expect_errno(post_send(link.a.qp.get(), good.wr, &at), errnos, what);
  if (at != &bad.wr) fail("%s: bad_wr is not the request that is wrong", what);
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  expect_no_completion(link.a.send_cq.get());
  expect_state(link.a.qp.get(), IBV_QPS_RTS);
  expect_bytes({link.b.memory.data(), 64}, std::byte{5}, "the good request's target");
}

void too_many_send_sges(Lab& lab) {
  Link link = lab.make_link();
  std::vector<ibv_sge> sges(link.a.cap.max_send_sge + 1, link.a.sge(0, 8));
  SendRequest bad(IBV_WR_RDMA_WRITE, 2, sges[0]);
  bad.wr.sg_list = sges.data();
  bad.wr.num_sge = static_cast<int>(sges.size());
  expect_second_refused(link, bad, {EINVAL}, "a SEND with one SGE too many");
}

void negative_send_sges(Lab& lab) {
  Link link = lab.make_link();
  SendRequest bad(IBV_WR_RDMA_WRITE, 2, link.a.sge(0, 8));
  bad.wr.num_sge = -1;
  expect_second_refused(link, bad, {EINVAL}, "a SEND with -1 SGEs");
}

void too_many_receive_sges(Lab& lab) {
  Link link = lab.make_link();
  std::vector<ibv_sge> sges(link.b.cap.max_recv_sge + 1, link.b.sge(0, 8));
  expect_errno(post_recv(link.b.qp.get(), 1, sges), {EINVAL}, "a receive with one SGE too many");
  expect_state(link.b.qp.get(), IBV_QPS_RTS);
}

void unknown_opcode(Lab& lab) {
  Link link = lab.make_link();
  SendRequest bad(static_cast<ibv_wr_opcode>(200), 2, link.a.sge(0, 8));
  expect_second_refused(link, bad, {EINVAL}, "a request with opcode 200");
}

void inline_longer_than_granted(Lab& lab) {
  LinkOptions options;
  options.max_inline_bytes = 32;
  Link link = lab.make_link(options);
  SendRequest bad(IBV_WR_RDMA_WRITE, 2, link.a.sge(0, link.a.cap.max_inline_data + 1));
  bad.wr.send_flags |= IBV_SEND_INLINE;
  expect_second_refused(link, bad, {EINVAL, ENOMEM}, "inline data longer than granted");
}

void inline_read(Lab& lab) {
  LinkOptions options;
  options.max_inline_bytes = 32;
  Link link = lab.make_link(options);
  SendRequest bad(IBV_WR_RDMA_READ, 2, link.a.sge(0, 8));
  bad.wr.send_flags |= IBV_SEND_INLINE;
  expect_second_refused(link, bad, {EINVAL}, "an inline READ");
}

// Nothing answers and nothing times out, so no request leaves the queue.
void full_send_queue(Lab& lab) {
  LinkOptions options;
  options.connected = false;
  options.cqe = 256;
  Link link = lab.make_link(options);
  RcOptions rc;
  rc.timeout = 0;
  connect_one(link.a.qp.get(), lab.a(), rc, lab.b().gid, lab.b().port.lid, link.b.qp->qp_num);
  SendRequest request(IBV_WR_SEND, 0, link.a.sge(0, 8));
  ibv_send_wr* bad = nullptr;
  uint32_t posted = 0;
  int rc_post = 0;
  while (posted <= link.a.cap.max_send_wr && rc_post == 0) {
    request.wr.wr_id = posted;
    rc_post = post_send(link.a.qp.get(), request.wr, &bad);
    if (rc_post == 0) ++posted;
  }
  expect_errno(rc_post, {ENOMEM}, "posting to a full send queue");
  if (bad != &request.wr) fail("bad_wr is not the request that found the queue full");
  if (posted < options.max_send_wr) {
    fail("the send queue took %u, %u were asked for", posted, options.max_send_wr);
  }
  must(change_to(IBV_QPS_ERR).apply(link.a.qp.get()), "ibv_modify_qp to ERR");
  for (uint32_t i = 0; i < posted; ++i) {
    expect_completion(link.a.send_cq.get(), i, {IBV_WC_WR_FLUSH_ERR});
  }
}

void full_receive_queue(Lab& lab) {
  LinkOptions options;
  options.cqe = 256;
  Link link = lab.make_link(options);
  ibv_sge sge = link.b.sge(0, 8);
  uint32_t posted = 0;
  int rc = 0;
  while (posted <= link.b.cap.max_recv_wr && rc == 0) {
    rc = post_recv(link.b.qp.get(), posted, {&sge, 1});
    if (rc == 0) ++posted;
  }
  expect_errno(rc, {ENOMEM}, "posting to a full receive queue");
  if (posted < options.max_recv_wr) {
    fail("the receive queue took %u, %u were asked for", posted, options.max_recv_wr);
  }
  SendRequest request(IBV_WR_SEND, 1000, link.a.sge(0, 8));
  post_ok(link.a.qp.get(), request);
  expect_completion(link.b.recv_cq.get(), 0, {IBV_WC_SUCCESS});
  must(post_recv(link.b.qp.get(), 2000, {&sge, 1}), "posting after one receive was taken");
}

// One unsignalled request too many behind a signalled one: slots come back with a later completion.
void full_of_unsignalled(Lab& lab) {
  Link link = lab.make_link();
  SendRequest request(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, 8));
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  for (uint32_t round = 0; round < 3; ++round) {
    request.wr.send_flags = 0;
    for (uint32_t i = 1; i < link.a.cap.max_send_wr; ++i) post_ok(link.a.qp.get(), request);
    request.wr.send_flags = IBV_SEND_SIGNALED;
    post_ok(link.a.qp.get(), request);
    expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
    expect_no_completion(link.a.send_cq.get());
  }
}

void cq_overrun(Lab& lab) {
  LinkOptions options;
  options.cqe = 4;
  options.max_send_wr = 64;
  Link link = lab.make_link(options);
  const auto entries = static_cast<uint32_t>(link.a.send_cq->cqe);
  if (entries + 1 > options.max_send_wr) throw Skipped("the smallest CQ has more than 63 entries");
  SendRequest request(IBV_WR_RDMA_WRITE, 1, link.a.sge(0, 8));
  request.remote(link.b.memory.address(), link.b.mr->rkey);
  for (uint32_t i = 0; i <= entries; ++i) post_ok(link.a.qp.get(), request);
  expect_cq_event(lab.a(), link.a.send_cq.get(), IBV_EVENT_CQ_ERR);
}

constexpr Row kQueueRows[] = {
    {"too many SGEs in a send", too_many_send_sges},
    {"negative number of SGEs", negative_send_sges},
    {"too many SGEs in a receive", too_many_receive_sges},
    {"unknown opcode", unknown_opcode},
    {"inline data longer than granted", inline_longer_than_granted},
    {"inline READ", inline_read},
    {"full send queue", full_send_queue},
    {"full receive queue", full_receive_queue},
    {"send queue full of unsignalled requests (allowed)", full_of_unsignalled},
    {"completion queue overrun", cq_overrun},
};

}  // namespace

std::span<const Row> queue_rows() { return kQueueRows; }

}  // namespace rocemu::e2e
