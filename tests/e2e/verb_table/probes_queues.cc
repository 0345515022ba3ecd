// verb_table's calls about queues and what moves between them.
#include <fcntl.h>
#include <poll.h>

#include "tests/e2e/verb_table/bench.h"

namespace rocemu::e2e {
namespace {

int outcome_qp(ibv_qp* qp) { return outcome(qp, ibv_destroy_qp); }

ibv_ah_attr path_to_itself(const Bench& b) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = kPort;
  attr.grh.dgid = b.device.gid;
  attr.grh.sgid_index = b.device.gid_index;
  attr.grh.hop_limit = 1;
  return attr;
}

int with_srq(const Bench& b, const std::function<int(ibv_srq*)>& probe) {
  ibv_srq_init_attr init{};
  init.attr = {16, 1, 0};
  ibv_srq* srq = ibv_create_srq(b.pd(), &init);
  if (srq == nullptr) return errno;
  const int rc = probe(srq);
  const int destroyed = ibv_destroy_srq(srq);
  return rc != 0 ? rc : destroyed;
}

int extended_cq(const Bench& b, uint64_t wc_flags, uint32_t create_flags = 0) {
  ibv_cq_init_attr_ex init{};
  init.cqe = 16;
  init.wc_flags = wc_flags;
  init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  init.flags = create_flags;
  ibv_cq_ex* cq = ibv_create_cq_ex(b.context(), &init);
  if (cq == nullptr) return errno;
  ibv_poll_cq_attr attr{};
  const int polled = ibv_start_poll(cq, &attr);
  const int destroyed = ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  return polled != ENOENT ? EIO : destroyed;
}

int extended_qp(const Bench& b, uint64_t send_ops, ibv_qp_type type = IBV_QPT_RC,
                uint16_t max_tso_header = 0) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = b.cq.get();
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = type;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (max_tso_header != 0) init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  init.max_tso_header = max_tso_header;
  init.pd = b.pd();
  init.send_ops_flags = send_ops;
  ibv_qp* qp = ibv_create_qp_ex(b.context(), &init);
  if (qp == nullptr) return errno;
  const bool extended = ibv_qp_to_qp_ex(qp) != nullptr;
  const int destroyed = ibv_destroy_qp(qp);
  return extended ? destroyed : EIO;
}

int receive_event(const Bench& b) {
  constexpr int kPatienceMs = 10000;
  if (const int rc = ibv_req_notify_cq(b.cq.get(), 0); rc != 0) return rc;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  if (const int rc = post_and_poll(b, wr, true); rc != 0) return rc;
  pollfd waits{b.channel->fd, POLLIN, 0};
  if (poll(&waits, 1, kPatienceMs) != 1) return ETIMEDOUT;
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  if (ibv_get_cq_event(b.channel.get(), &cq, &cq_context) != 0) return errno;
  ibv_ack_cq_events(cq, 1);
  return cq == b.cq.get() ? 0 : EIO;
}

ibv_gid multicast_gid() {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 239;
  gid.raw[15] = 7;
  return gid;
}

int with_ud_qp(const Bench& b, const std::function<int(ibv_qp*)>& probe) {
  ibv_qp* qp = b.make_qp(IBV_QPT_UD);
  if (qp == nullptr) return errno;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  const int init =
      ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  const int rc = init != 0 ? init : probe(qp);
  const int destroyed = ibv_destroy_qp(qp);
  return rc != 0 ? rc : destroyed;
}

int with_xrc_domain(const Bench& b, const std::function<int(ibv_xrcd*)>& probe) {
  ibv_xrcd_init_attr init{};
  init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  init.fd = -1;
  init.oflags = O_CREAT;
  ibv_xrcd* domain = ibv_open_xrcd(b.context(), &init);
  if (domain == nullptr) return errno;
  const int rc = probe(domain);
  const int closed = ibv_close_xrcd(domain);
  return rc != 0 ? rc : closed;
}

int xrc_srq(const Bench& b, ibv_xrcd* domain) {
  ibv_srq_init_attr_ex init{};
  init.attr = {16, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  init.srq_type = IBV_SRQT_XRC;
  init.xrcd = domain;
  init.cq = b.cq.get();
  init.pd = b.pd();
  ibv_srq* srq = ibv_create_srq_ex(b.context(), &init);
  if (srq == nullptr) return errno;
  uint32_t number = 0;
  const int numbered = ibv_get_srq_num(srq, &number);
  const int destroyed = ibv_destroy_srq(srq);
  return numbered != 0 ? numbered : destroyed;
}

// A table of one receive queue, and a QP over it.
int spread_over_one(const Bench& b) {
  ibv_wq_init_attr wq_init{};
  wq_init.wq_type = IBV_WQT_RQ;
  wq_init.max_wr = 4;
  wq_init.max_sge = 1;
  wq_init.pd = b.pd();
  wq_init.cq = b.cq.get();
  ibv_wq* wq = ibv_create_wq(b.context(), &wq_init);
  if (wq == nullptr) return errno;
  ibv_rwq_ind_table_init_attr table_init{};
  table_init.ind_tbl = &wq;
  ibv_rwq_ind_table* table = ibv_create_rwq_ind_table(b.context(), &table_init);
  if (table == nullptr) return errno;
  uint8_t key[40] = {};
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  init.pd = b.pd();
  init.rwq_ind_tbl = table;
  init.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key, IBV_RX_HASH_SRC_IPV4};
  int rc = outcome_qp(ibv_create_qp_ex(b.context(), &init));
  for (const int destroyed : {ibv_destroy_rwq_ind_table(table), ibv_destroy_wq(wq)})
    if (rc == 0) rc = destroyed;
  return rc;
}

}  // namespace

std::span<const Probe> queue_probes() {
  static const Probe kProbes[] = {
      {"ibv_create_comp_channel",
       [](const Bench& b) {
         return outcome(ibv_create_comp_channel(b.context()), ibv_destroy_comp_channel);
       }},
      {"ibv_create_cq",
       [](const Bench& b) {
         return outcome(ibv_create_cq(b.context(), 1, nullptr, nullptr, 0), ibv_destroy_cq);
       }},
      {"ibv_create_cq_ex", [](const Bench& b) { return extended_cq(b, IBV_WC_STANDARD_FLAGS); }},
      {"ibv_create_cq_ex with IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN",
       [](const Bench& b) {
         return extended_cq(b, IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
       }},
      {"ibv_create_cq_ex with completion timestamps",
       [](const Bench& b) { return extended_cq(b, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP); }},
      {"ibv_create_cq_ex with wall-clock timestamps",
       [](const Bench& b) {
         return extended_cq(b, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
       }},
      {"ibv_create_cq_ex with VLANs",
       [](const Bench& b) { return extended_cq(b, IBV_WC_EX_WITH_CVLAN); }},
      {"ibv_create_cq_ex with flow tags",
       [](const Bench& b) { return extended_cq(b, IBV_WC_EX_WITH_FLOW_TAG); }},
      {"ibv_create_cq_ex with tag matching",
       [](const Bench& b) { return extended_cq(b, IBV_WC_EX_WITH_TM_INFO); }},
      {"ibv_resize_cq", [](const Bench& b) { return ibv_resize_cq(b.cq.get(), 128); }},
      {"ibv_modify_cq",
       [](const Bench& b) {
         ibv_modify_cq_attr attr{};
         attr.attr_mask = IBV_CQ_ATTR_MODERATE;
         attr.moderate = {8, 10};
         return ibv_modify_cq(b.cq.get(), &attr);
       }},
      {"ibv_req_notify_cq, ibv_get_cq_event", receive_event},
      {"ibv_create_qp of RC", [](const Bench& b) { return outcome_qp(b.make_qp(IBV_QPT_RC)); }},
      {"ibv_create_qp of UC", [](const Bench& b) { return outcome_qp(b.make_qp(IBV_QPT_UC)); }},
      {"ibv_create_qp of UD", [](const Bench& b) { return outcome_qp(b.make_qp(IBV_QPT_UD)); }},
      {"ibv_create_qp of XRC_SEND",
       [](const Bench& b) { return outcome_qp(b.make_qp(IBV_QPT_XRC_SEND)); }},
      {"ibv_create_qp of RAW_PACKET",
       [](const Bench& b) { return outcome_qp(b.make_qp(IBV_QPT_RAW_PACKET)); }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_SEND and RDMA_WRITE, both with immediate",
       [](const Bench& b) {
         return extended_qp(b, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                   IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
       }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_RDMA_READ and atomics",
       [](const Bench& b) {
         return extended_qp(b, IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
       }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_BIND_MW, LOCAL_INV, SEND_WITH_INV",
       [](const Bench& b) {
         return extended_qp(
             b, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV);
       }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_ATOMIC_WRITE",
       [](const Bench& b) { return extended_qp(b, IBV_QP_EX_WITH_ATOMIC_WRITE); }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_TSO of RAW_PACKET",
       [](const Bench& b) { return extended_qp(b, IBV_QP_EX_WITH_TSO, IBV_QPT_RAW_PACKET, 100); }},
      {"ibv_create_qp_ex, IBV_QP_EX_WITH_TSO of RC",
       [](const Bench& b) { return extended_qp(b, IBV_QP_EX_WITH_TSO); }},
      {"ibv_create_qp_ex, IBV_QP_INIT_ATTR_MAX_TSO_HEADER of UD",
       [](const Bench& b) { return extended_qp(b, IBV_QP_EX_WITH_SEND, IBV_QPT_UD, 100); }},
      {"ibv_modify_qp",
       [](const Bench& b) {
         ibv_qp_attr attr{};
         attr.min_rnr_timer = 3;
         return ibv_modify_qp(b.qp.get(), &attr, IBV_QP_MIN_RNR_TIMER);
       }},
      {"ibv_modify_qp with an alternate path",
       [](const Bench& b) {
         ibv_qp_attr attr{};
         attr.alt_ah_attr = path_to_itself(b);
         attr.alt_port_num = kPort;
         return ibv_modify_qp(b.qp.get(), &attr, IBV_QP_ALT_PATH);
       }},
      {"ibv_modify_qp_rate_limit",
       [](const Bench& b) {
         ibv_qp_rate_limit_attr attr{};
         attr.rate_limit = 1000;
         return ibv_modify_qp_rate_limit(b.qp.get(), &attr);
       }},
      {"ibv_query_qp",
       [](const Bench& b) {
         ibv_qp_attr attr;
         ibv_qp_init_attr init;
         return ibv_query_qp(b.qp.get(), &attr, IBV_QP_STATE, &init);
       }},
      {"ibv_query_ece",
       [](const Bench& b) {
         ibv_ece ece{};
         return ibv_query_ece(b.qp.get(), &ece);
       }},
      {"ibv_create_ah",
       [](const Bench& b) {
         ibv_ah_attr attr = path_to_itself(b);
         return outcome(ibv_create_ah(b.pd(), &attr), ibv_destroy_ah);
       }},
      {"ibv_create_srq", [](const Bench& b) { return with_srq(b, [](ibv_srq*) { return 0; }); }},
      {"ibv_modify_srq",
       [](const Bench& b) {
         return with_srq(b, [](ibv_srq* srq) {
           ibv_srq_attr attr{};
           attr.srq_limit = 1;
           return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
         });
       }},
      {"ibv_query_srq",
       [](const Bench& b) {
         return with_srq(b, [](ibv_srq* srq) {
           ibv_srq_attr attr;
           return ibv_query_srq(srq, &attr);
         });
       }},
      {"ibv_post_srq_recv",
       [](const Bench& b) {
         return with_srq(b, [&b](ibv_srq* srq) {
           ibv_sge sge = b.sge();
           ibv_recv_wr wr{};
           wr.sg_list = &sge;
           wr.num_sge = 1;
           ibv_recv_wr* bad = nullptr;
           return ibv_post_srq_recv(srq, &wr, &bad);
         });
       }},
      {"ibv_open_xrcd",
       [](const Bench& b) { return with_xrc_domain(b, [](ibv_xrcd*) { return 0; }); }},
      {"ibv_create_srq_ex of XRC, ibv_get_srq_num",
       [](const Bench& b) {
         return with_xrc_domain(b, [&b](ibv_xrcd* domain) { return xrc_srq(b, domain); });
       }},
      {"ibv_attach_mcast, ibv_detach_mcast",
       [](const Bench& b) {
         return with_ud_qp(b, [](ibv_qp* qp) {
           const ibv_gid gid = multicast_gid();
           const int rc = ibv_attach_mcast(qp, &gid, 0);
           return rc != 0 ? rc : ibv_detach_mcast(qp, &gid, 0);
         });
       }},
      {"ibv_create_flow",
       [](const Bench& b) {
         ibv_flow_attr attr{};
         attr.type = IBV_FLOW_ATTR_NORMAL;
         attr.size = sizeof(attr);
         attr.port = kPort;
         const QpPtr qp(b.make_qp(IBV_QPT_RAW_PACKET));
         if (qp == nullptr) return errno;
         return outcome(ibv_create_flow(qp.get(), &attr), ibv_destroy_flow);
       }},
      {"ibv_create_counters",
       [](const Bench& b) {
         ibv_counters_init_attr init{};
         ibv_counters* counters = ibv_create_counters(b.context(), &init);
         if (counters == nullptr) return errno;
         ibv_counter_attach_attr attach{};
         uint64_t packets = 1;
         int rc = ibv_attach_counters_point_flow(counters, &attach, nullptr);
         if (rc == 0) rc = ibv_read_counters(counters, &packets, 1, 0);
         const int destroyed = ibv_destroy_counters(counters);
         return rc != 0 ? rc : packets != 0 ? EIO : destroyed;
       }},
      {"ibv_create_wq",
       [](const Bench& b) {
         ibv_wq_init_attr init{};
         init.wq_type = IBV_WQT_RQ;
         init.max_wr = 4;
         init.max_sge = 1;
         init.pd = b.pd();
         init.cq = b.cq.get();
         ibv_wq* wq = ibv_create_wq(b.context(), &init);
         if (wq == nullptr) return errno;
         ibv_wq_attr attr{};
         attr.attr_mask = IBV_WQ_ATTR_STATE;
         attr.wq_state = IBV_WQS_RDY;
         const int rc = ibv_modify_wq(wq, &attr);
         const int destroyed = ibv_destroy_wq(wq);
         return rc != 0 ? rc : destroyed;
       }},
      {"ibv_create_rwq_ind_table", spread_over_one},
  };
  return kProbes;
}

}  // namespace rocemu::e2e
