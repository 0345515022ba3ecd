// Rows of bad input about the responder: remote memory a request may not use, and receives that
// cannot take what comes.
//
// IBTA vol. 1, 9.7.4.1 and table 63: a bad rkey, bounds or region right is NAK remote access error,
// an operation the QP does not allow is NAK invalid request, memory that fails while it is used is
// NAK remote operational error. In each case the responder's QP goes to the error state; where no
// receive of its own reports the error, an affiliated asynchronous error does.
#include <cstring>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

constexpr uint32_t kTargetBytes = 6000;  // more than one packet at every MTU
constexpr size_t kPageBytes = 4096;

struct Target {
  uint64_t address;
  uint32_t rkey;
};

Target target(const LinkEnd& end) { return {end.memory.address(), end.mr->rkey}; }

// Carries out a WRITE or READ that the responder must refuse, with receives posted that must be
// flushed, and checks that no byte of the responder's memory (or of a READ's target) moved.
void expect_refused_by_responder(Lab& lab, Link& link, ibv_wr_opcode opcode, const Target& to,
                                 ibv_wc_status status, ibv_event_type event) {
  std::memset(link.a.memory.data(), 1, link.a.memory.bytes());
  std::memset(link.b.memory.data(), 2, link.b.memory.bytes());
  post_recv_ok(link.b.qp.get(), 21, link.b.sge(0, 8));
  post_recv_ok(link.b.qp.get(), 22, link.b.sge(0, 8));
  SendRequest request(opcode, 1, link.a.sge(0, kTargetBytes));
  post_ok(link.a.qp.get(), request.remote(to.address, to.rkey));
  expect_completion(link.a.send_cq.get(), 1, {status});
  expect_no_completion(link.a.send_cq.get());
  expect_state(link.a.qp.get(), IBV_QPS_ERR);
  expect_flushed(link.b.recv_cq.get(), {21, 22});
  expect_state(link.b.qp.get(), IBV_QPS_ERR);
  expect_qp_event(lab.b(), link.b.qp.get(), event);
  expect_bytes({link.a.memory.data(), link.a.memory.bytes()}, std::byte{1}, "requester's memory");
  expect_bytes({link.b.memory.data(), link.b.memory.bytes()}, std::byte{2}, "responder's memory");
}

void expect_access_error(Lab& lab, Link& link, ibv_wr_opcode opcode, const Target& to) {
  expect_refused_by_responder(lab, link, opcode, to, IBV_WC_REM_ACCESS_ERR,
                              IBV_EVENT_QP_ACCESS_ERR);
}

// Each runs for a WRITE and for a READ.
template <typename Change>
void both_with_target(Lab& lab, Change change) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Link link = lab.make_link();
    Target to = target(link.b);
    change(link, to);
    expect_access_error(lab, link, opcode, to);
  }
}

void bad_rkey(Lab& lab) {
  both_with_target(lab, [](Link&, Target& to) { to.rkey ^= 0xff; });
}

void rkey_never_given(Lab& lab) {
  both_with_target(lab, [](Link&, Target& to) { to.rkey = 0xffffffff; });
}

void past_the_end(Lab& lab) {
  both_with_target(
      lab, [](Link& link, Target& to) { to.address += link.b.memory.bytes() - kTargetBytes + 1; });
}

void before_the_start(Lab& lab) {
  both_with_target(lab, [](Link&, Target& to) { to.address -= 1; });
}

void range_that_wraps(Lab& lab) {
  both_with_target(lab, [](Link&, Target& to) { to.address = ~uint64_t{0} - 10; });
}

void after_dereg(Lab& lab) {
  both_with_target(lab, [&lab](Link& link, Target& to) {
    const MrPtr mr =
        register_memory(lab.b().pd.get(), link.b.memory.data(), kTargetBytes, kAllRights);
    to.rkey = must(mr.get(), "ibv_reg_mr")->rkey;
  });
}

void region_of_other_pd(Lab& lab) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Link link = lab.make_link();
    const PdPtr pd(must(ibv_alloc_pd(lab.b().context.get()), "ibv_alloc_pd"));
    const MrPtr mr = register_memory(pd.get(), link.b.memory.data(), kTargetBytes, kAllRights);
    must(mr.get(), "ibv_reg_mr");
    expect_access_error(lab, link, opcode, {link.b.memory.address(), mr->rkey});
  }
}

void region_without_right(Lab& lab, ibv_wr_opcode opcode, unsigned access) {
  Link link = lab.make_link();
  const MrPtr mr = register_memory(lab.b().pd.get(), link.b.memory.data(), kTargetBytes, access);
  must(mr.get(), "ibv_reg_mr");
  expect_access_error(lab, link, opcode, {link.b.memory.address(), mr->rkey});
}

void region_without_remote_write(Lab& lab) {
  region_without_right(lab, IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

void region_without_remote_read(Lab& lab) {
  region_without_right(lab, IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

void qp_without_right(Lab& lab, ibv_wr_opcode opcode, unsigned access) {
  LinkOptions options;
  options.rc.access = access;
  Link link = lab.make_link(options);
  expect_refused_by_responder(lab, link, opcode, target(link.b), IBV_WC_REM_INV_REQ_ERR,
                              IBV_EVENT_QP_REQ_ERR);
}

void qp_without_remote_write(Lab& lab) {
  qp_without_right(lab, IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

void qp_without_remote_read(Lab& lab) {
  qp_without_right(lab, IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

// IBTA C9-88: the rkey of a request of no bytes is not looked at.
void zero_bytes_with_bad_rkey(Lab& lab) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Link link = lab.make_link();
    SendRequest request(opcode, 1, link.a.sge(0, 0));
    post_ok(link.a.qp.get(), request.remote(0xdead, 0xdead));
    expect_completion(link.a.send_cq.get(), 1, {IBV_WC_SUCCESS});
  }
}

// munmap is not an offence against a key; which NAK says "the memory failed" is left to the device.
void unmapped_target(Lab& lab) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Link link = lab.make_link();
    Memory memory(4 * kPageBytes);
    const MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kAllRights);
    must(mr.get(), "ibv_reg_mr");
    memory.unmap();
    SendRequest request(opcode, 1, link.a.sge(0, kTargetBytes));
    post_ok(link.a.qp.get(), request.remote(memory.address(), mr->rkey));
    expect_completion(link.a.send_cq.get(), 1, {IBV_WC_REM_OP_ERR, IBV_WC_REM_ACCESS_ERR});
    expect_state(link.a.qp.get(), IBV_QPS_ERR);
    expect_state(link.b.qp.get(), IBV_QPS_ERR);
  }
}

// IBTA vol 1, 11.6.2: "local access error" is of the receive that such a request would complete.
void written_with_immediate(Lab& lab) {
  const Link link = lab.make_link();
  for (const uint64_t id : {21, 22}) post_recv_ok(link.b.qp.get(), id, link.b.sge(0, 8));
  SendRequest request(IBV_WR_RDMA_WRITE_WITH_IMM, 1, link.a.sge(0, 64));
  post_ok(link.a.qp.get(), request.remote(link.b.memory.address(), link.b.mr->rkey ^ 0xff));
  expect_completion(link.a.send_cq.get(), 1, {IBV_WC_REM_ACCESS_ERR});
  expect_completion(link.b.recv_cq.get(), 21, {IBV_WC_LOC_ACCESS_ERR});
  expect_flushed(link.b.recv_cq.get(), {22});
  expect_state(link.b.qp.get(), IBV_QPS_ERR);
  lab.check_no_events();  // the receive said so
}

constexpr Row kRemoteMemoryRows[] = {
    {"WRITE with immediate with a bad rkey", written_with_immediate},
    {"WRITE, READ with a bad rkey", bad_rkey},
    {"WRITE, READ with an rkey never given", rkey_never_given},
    {"WRITE, READ one byte past the region", past_the_end},
    {"WRITE, READ one byte before the region", before_the_start},
    {"WRITE, READ of a range that wraps", range_that_wraps},
    {"WRITE, READ with the rkey of a deregistered region", after_dereg},
    {"WRITE, READ with the rkey of another PD's region", region_of_other_pd},
    {"WRITE to a region without REMOTE_WRITE", region_without_remote_write},
    {"READ of a region without REMOTE_READ", region_without_remote_read},
    {"WRITE to a QP without REMOTE_WRITE", qp_without_remote_write},
    {"READ of a QP without REMOTE_READ", qp_without_remote_read},
    {"WRITE, READ of no bytes with a bad rkey (allowed)", zero_bytes_with_bad_rkey},
    {"WRITE, READ of memory unmapped after registration", unmapped_target},
};

// ---- receives that cannot take what comes ----

// A SEND into a receive that fails: its completion tells the responder, a NAK tells the requester.
void expect_receive_error(Lab& lab, Link& link, ibv_sge receive, ibv_wc_status at_responder,
                          ibv_wc_status at_requester) {
  post_recv_ok(link.b.qp.get(), 11, receive);
  post_recv_ok(link.b.qp.get(), 12, link.b.sge(0, 8));
  SendRequest request(IBV_WR_SEND, 1, link.a.sge(0, kTargetBytes));
  post_ok(link.a.qp.get(), request);
  expect_completion(link.b.recv_cq.get(), 11, {at_responder});
  expect_flushed(link.b.recv_cq.get(), {12});
  expect_completion(link.a.send_cq.get(), 1, {at_requester});
  expect_state(link.a.qp.get(), IBV_QPS_ERR);
  expect_state(link.b.qp.get(), IBV_QPS_ERR);
  lab.check_no_events();  // the receive said so
}

void send_longer_than_receive(Lab& lab) {
  for (const uint32_t room : {0u, 1u, kTargetBytes - 1}) {
    Link link = lab.make_link();
    std::memset(link.a.memory.data(), 1, link.a.memory.bytes());
    std::memset(link.b.memory.data(), 2, link.b.memory.bytes());
    expect_receive_error(lab, link, link.b.sge(0, room), IBV_WC_LOC_LEN_ERR,
                         IBV_WC_REM_INV_REQ_ERR);
    expect_bytes({link.b.memory.data() + room, link.b.memory.bytes() - room}, std::byte{2},
                 "memory behind the receive");
  }
}

void receive_with_bad_lkey(Lab& lab) {
  Link link = lab.make_link();
  ibv_sge receive = link.b.sge(0, kTargetBytes);
  receive.lkey ^= 0xff;
  expect_receive_error(lab, link, receive, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

void receive_past_the_region(Lab& lab) {
  Link link = lab.make_link();
  const ibv_sge receive = link.b.sge(link.b.memory.bytes() - kTargetBytes + 1, kTargetBytes);
  expect_receive_error(lab, link, receive, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

void receive_into_region_without_local_write(Lab& lab) {
  Link link = lab.make_link();
  std::memset(link.b.memory.data(), 2, link.b.memory.bytes());
  const MrPtr mr = register_memory(lab.b().pd.get(), link.b.memory.data(), kTargetBytes, 0);
  must(mr.get(), "ibv_reg_mr");
  expect_receive_error(lab, link, {link.b.memory.address(), kTargetBytes, mr->lkey},
                       IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
  expect_bytes({link.b.memory.data(), kTargetBytes}, std::byte{2}, "the receive's target");
}

void receive_into_unmapped_memory(Lab& lab) {
  Link link = lab.make_link();
  Memory memory(4 * kPageBytes);
  const MrPtr mr = register_memory(lab.b().pd.get(), memory.data(), memory.bytes(), kAllRights);
  must(mr.get(), "ibv_reg_mr");
  memory.unmap();
  expect_receive_error(lab, link, {memory.address(), kTargetBytes, mr->lkey}, IBV_WC_LOC_PROT_ERR,
                       IBV_WC_REM_OP_ERR);
}

constexpr Row kReceiveRows[] = {
    {"SEND longer than the receive", send_longer_than_receive},
    {"receive with a bad lkey", receive_with_bad_lkey},
    {"receive one byte past the region", receive_past_the_region},
    {"receive into a region without LOCAL_WRITE", receive_into_region_without_local_write},
    {"receive into memory unmapped after registration", receive_into_unmapped_memory},
};

}  // namespace

std::span<const Row> remote_memory_rows() { return kRemoteMemoryRows; }
std::span<const Row> receive_rows() { return kReceiveRows; }

}  // namespace rocemu::e2e
