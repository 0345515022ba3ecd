// Tables and pipes that all programs share, filled by one.
#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/hostile/deeds.h"
#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {
namespace {

// So that it is the NIC that has no more, and not this program.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Channels, each with a CQ, since the NIC is told of a channel with its first; until there are no
// more. How many there are now.
unsigned make_channels(ibv_context* context) {
  for (unsigned made = 0;; ++made) {
    ibv_comp_channel* const channel = ibv_create_comp_channel(context);
    if (channel == nullptr || ibv_create_cq(context, 1, nullptr, channel, 0) == nullptr)
      return made;
  }
}

// Ends this program, of which too little came to try anything.
void must_have(unsigned made, unsigned least, const char* what) {
  if (made < least)
    throw std::runtime_error(std::to_string(made) + " " + what + ", of " + std::to_string(least) +
                             " at least");
}

// As many channels and CQs as there are, for this program and its next contexts.
void make_all_queues(const std::string& device) {
  raise_descriptor_limit();
  std::vector<Device> opened;
  for (;;) {
    try {
      opened.push_back(open_device(device, 1));
    } catch (const std::exception&) {
      if (opened.empty()) throw;
      break;
    }
    ibv_context* const context = opened.back().context.get();
    const unsigned channels = make_channels(context);
    if (opened.size() == 1) must_have(channels, 100, "channels");
    while (ibv_create_cq(context, 1, nullptr, nullptr, 0) != nullptr) continue;
    if (opened.size() == 8) break;
  }
  for (;;) ::pause();
}

// Everything that tables of a device have places for, of each until there is no more.
void fill_all_tables(const std::string& device) {
  raise_descriptor_limit();
  const Device first = open_device(device, 1);
  unsigned contexts = 1;
  while (ibv_open_device(first.context->device) != nullptr) ++contexts;
  must_have(contexts, 100, "contexts");
  must_have(make_channels(first.context.get()), 100, "channels");
  ibv_alloc_dm_attr byte{};
  byte.length = 1;
  while (ibv_alloc_dm(first.context.get(), &byte) != nullptr) continue;
  const Memory memory(4096);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = first.gid;
  attr.grh.sgid_index = first.gid_index;
  attr.port_num = kPort;
  ibv_pd* const pd = first.pd.get();
  while (register_memory(pd, memory.data(), 4096, kAllRights).release() != nullptr) continue;
  while (ibv_alloc_mw(pd, IBV_MW_TYPE_2) != nullptr) continue;
  while (ibv_create_ah(pd, &attr) != nullptr) continue;
  ibv_xrcd_init_attr domain{};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  domain.oflags = O_CREAT;
  while (ibv_open_xrcd(first.context.get(), &domain) != nullptr) continue;
  while (ibv_alloc_pd(first.context.get()) != nullptr) continue;
  for (;;) ::pause();
}

// Completion events and events of the SRQ's limit, of which nobody reads one.
void leave_events_unread(const std::string& device) {
  const Lab lab(open_device(device, 1), open_device(device, 1));
  const ChannelPtr channel(
      must(ibv_create_comp_channel(lab.a().context.get()), "ibv_create_comp_channel"));
  const CqPtr watched(
      must(ibv_create_cq(lab.a().context.get(), 64, nullptr, channel.get(), 0), "ibv_create_cq"));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = watched.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 16, 1, 1, 0};
  ibv_srq_init_attr srq_init{};
  srq_init.attr = {16, 1, 0};
  ibv_srq* const srq = must(ibv_create_srq(lab.a().pd.get(), &srq_init), "ibv_create_srq");
  for (;;) {
    // Armed above what is posted, the limit is reached at once.
    ibv_srq_attr limit{};
    limit.srq_limit = 1;
    ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT);
    // A QP in error completes its receive at once.
    const QpPtr qp(must(ibv_create_qp(lab.a().pd.get(), &init), "ibv_create_qp"));
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = kPort;
    must(ibv_modify_qp(qp.get(), &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "ibv_modify_qp to INIT");
    must(change_to(IBV_QPS_ERR).apply(qp.get()), "ibv_modify_qp to ERR");
    for (int i = 0; i < 16; ++i) {
      ibv_req_notify_cq(watched.get(), 0);
      post_recv(qp.get(), 0, {});
      ibv_wc wc;
      while (ibv_poll_cq(watched.get(), 1, &wc) == 0) continue;
    }
  }
}

sockaddr_in address(const char* ip, uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  ::inet_pton(AF_INET, ip, &in.sin_addr);
  return in;
}

// Listens on every port there is, and connects to itself again and again without reading an event.
void flood_connection_manager(const std::string&) {
  constexpr const char* kOwn = "10.77.0.1";
  rdma_event_channel* const unread = rdma_create_event_channel();
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (unread == nullptr || channel == nullptr) fail_errno(errno, "rdma_create_event_channel");
  uint16_t listened = 0;
  for (uint16_t port = 1024; port < 60000; ++port) {
    rdma_cm_id* id = nullptr;
    sockaddr_in at = address(kOwn, port);
    if (rdma_create_id(unread, &id, nullptr, RDMA_PS_TCP) != 0) break;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)) != 0 || rdma_listen(id, 64) != 0)
      break;
    if (listened == 0) listened = port;
  }
  if (listened == 0) fail_errno(errno, "not one rdma_listen");
  while (rdma_create_event_channel() != nullptr) continue;
  for (;;) {
    rdma_cm_id* id = nullptr;
    sockaddr_in to = address(kOwn, listened);
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
      ::usleep(1000);  // nothing more is to be had
      continue;
    }
    rdma_conn_param param{};
    if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000) != 0) continue;
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    if (rdma_resolve_route(id, 1000) != 0 || rdma_create_qp(id, nullptr, &init) != 0) continue;
    rdma_connect(id, &param);
  }
}

}  // namespace

std::span<const Deed> table_deeds() {
  static constexpr Deed kDeeds[] = {{"all-queues", nothing_missing, make_all_queues},
                                    {"all-tables", nothing_missing, fill_all_tables},
                                    {"unread-events", nothing_missing, leave_events_unread},
                                    {"cm-flood", nothing_missing, flood_connection_manager}};
  return kDeeds;
}

}  // namespace rocemu::e2e
