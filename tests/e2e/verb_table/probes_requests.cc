// verb_table's calls of ibv_post_send, with every opcode, and of what else was not called with
// memory and queues.
#include <endian.h>
#include <netinet/in.h>

#include "tests/e2e/verb_table/bench.h"

namespace rocemu::e2e {
namespace {

ibv_send_wr request(ibv_wr_opcode opcode) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  return wr;
}

ibv_send_wr to_memory(const Bench& b, ibv_wr_opcode opcode) {
  ibv_send_wr wr = request(opcode);
  wr.wr.rdma.remote_addr = b.memory.address() + 4096;
  wr.wr.rdma.rkey = b.mr->rkey;
  return wr;
}

int atomic(const Bench& b, ibv_wr_opcode opcode) {
  ibv_send_wr wr = request(opcode);
  wr.wr.atomic.remote_addr = b.memory.address() + 4096;
  wr.wr.atomic.rkey = b.mr->rkey;
  return post_and_poll(b, wr, false, 8);
}

ibv_send_wr binding(const Bench& b, ibv_mw* mw) {
  ibv_send_wr wr = request(IBV_WR_BIND_MW);
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = mw->rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = {b.mr.get(), b.memory.address(), 64, IBV_ACCESS_REMOTE_WRITE};
  return wr;
}

// A window is bound, and what the probe does ends that.
template <typename Probe>
int with_bound_window(const Bench& b, Probe probe) {
  ibv_mw* mw = ibv_alloc_mw(b.pd(), IBV_MW_TYPE_2);
  if (mw == nullptr) return errno;
  int rc = post_and_poll(b, binding(b, mw), false, 0);
  if (rc == 0) rc = probe(mw->rkey);
  const int destroyed = ibv_dealloc_mw(mw);
  return rc != 0 ? rc : destroyed;
}

ibv_srq* create_tag_matching_srq(const Bench& b) {
  ibv_srq_init_attr_ex init{};
  init.attr = {16, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  init.srq_type = IBV_SRQT_TM;
  init.pd = b.pd();
  init.cq = b.cq.get();
  init.tm_cap = {16, 16};
  return ibv_create_srq_ex(b.context(), &init);
}

}  // namespace

int post_and_poll(const Bench& b, ibv_send_wr wr, bool takes_receive, uint32_t bytes) {
  ibv_sge sge = b.sge();
  sge.length = bytes;
  if (bytes > 0) {
    wr.sg_list = &sge;
    wr.num_sge = 1;
  }
  wr.send_flags |= IBV_SEND_SIGNALED;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad = nullptr;
  if (takes_receive) {
    receive.sg_list = &sge;
    receive.num_sge = 1;
    if (const int rc = ibv_post_recv(b.qp.get(), &receive, &bad_receive); rc != 0) return rc;
  }
  if (const int rc = ibv_post_send(b.qp.get(), &wr, &bad); rc != 0) return rc;
  for (int i = 0; i < (takes_receive ? 2 : 1); ++i) {
    const auto wc = poll_one(b.cq.get(), std::chrono::seconds(10));
    if (!wc) return ETIMEDOUT;
    if (wc->status != IBV_WC_SUCCESS) return EIO;
  }
  return 0;
}

std::span<const Probe> request_probes() {
  static const Probe kProbes[] = {
      {"ibv_post_send of IBV_WR_SEND",
       [](const Bench& b) { return post_and_poll(b, request(IBV_WR_SEND), true); }},
      {"ibv_post_send of IBV_WR_SEND_WITH_IMM",
       [](const Bench& b) { return post_and_poll(b, request(IBV_WR_SEND_WITH_IMM), true); }},
      {"ibv_post_send of IBV_WR_SEND_WITH_INV",
       [](const Bench& b) {
         return with_bound_window(b, [&b](uint32_t rkey) {
           ibv_send_wr wr = request(IBV_WR_SEND_WITH_INV);
           wr.invalidate_rkey = rkey;
           return post_and_poll(b, wr, true);
         });
       }},
      {"ibv_post_send of IBV_WR_RDMA_WRITE",
       [](const Bench& b) { return post_and_poll(b, to_memory(b, IBV_WR_RDMA_WRITE), false); }},
      {"ibv_post_send of IBV_WR_RDMA_WRITE_WITH_IMM",
       [](const Bench& b) {
         return post_and_poll(b, to_memory(b, IBV_WR_RDMA_WRITE_WITH_IMM), true);
       }},
      {"ibv_post_send of IBV_WR_RDMA_READ",
       [](const Bench& b) { return post_and_poll(b, to_memory(b, IBV_WR_RDMA_READ), false); }},
      {"ibv_post_send of IBV_WR_ATOMIC_CMP_AND_SWP",
       [](const Bench& b) { return atomic(b, IBV_WR_ATOMIC_CMP_AND_SWP); }},
      {"ibv_post_send of IBV_WR_ATOMIC_FETCH_AND_ADD",
       [](const Bench& b) { return atomic(b, IBV_WR_ATOMIC_FETCH_AND_ADD); }},
      {"ibv_post_send of IBV_WR_ATOMIC_WRITE",
       [](const Bench& b) {
         return post_and_poll(b, to_memory(b, IBV_WR_ATOMIC_WRITE), false, 8);
       }},
      {"ibv_post_send of IBV_WR_BIND_MW",
       [](const Bench& b) { return with_bound_window(b, [](uint32_t) { return 0; }); }},
      {"ibv_post_send of IBV_WR_LOCAL_INV",
       [](const Bench& b) {
         return with_bound_window(b, [&b](uint32_t rkey) {
           ibv_send_wr wr = request(IBV_WR_LOCAL_INV);
           wr.invalidate_rkey = rkey;
           return post_and_poll(b, wr, false, 0);
         });
       }},
      {"ibv_set_ece",
       [](const Bench& b) {
         ibv_ece ece{};
         if (const int rc = ibv_query_ece(b.qp.get(), &ece); rc != 0) return rc;
         return ibv_set_ece(b.qp.get(), &ece);
       }},
      {"ibv_create_ah_from_wc",
       [](const Bench& b) {
         ibv_wc wc{};
         wc.wc_flags = IBV_WC_GRH;
         ibv_grh grh{};  // as of RoCE v2 over IPv6
         grh.version_tclass_flow = htobe32(6u << 28);
         grh.next_hdr = IPPROTO_UDP;
         if (ibv_query_gid(b.context(), kPort, 0, &grh.sgid) != 0) return errno;
         grh.dgid = grh.sgid;
         return outcome(ibv_create_ah_from_wc(b.pd(), &wc, &grh, kPort), ibv_destroy_ah);
       }},
      {"ibv_create_flow_action_esp",
       [](const Bench& b) {
         ibv_flow_action_esp_attr attr{};
         return outcome(ibv_create_flow_action_esp(b.context(), &attr), ibv_destroy_flow_action);
       }},
      {"ibv_create_srq_ex of tag matching",
       [](const Bench& b) { return outcome(create_tag_matching_srq(b), ibv_destroy_srq); }},
      {"ibv_post_srq_ops",
       [](const Bench& b) {
         ibv_srq* const srq = create_tag_matching_srq(b);
         if (srq == nullptr) return errno;
         ibv_ops_wr sync{};
         sync.opcode = IBV_WR_TAG_SYNC;
         ibv_ops_wr* bad = nullptr;
         const int rc = ibv_post_srq_ops(srq, &sync, &bad);
         return rc != 0 ? rc : ibv_destroy_srq(srq);
       }},
  };
  return kProbes;
}

}  // namespace rocemu::e2e
