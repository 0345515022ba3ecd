#include "emulator/script/agent/ibv_program.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace rocemu::script {

namespace {

constexpr uint8_t kPort = 1;

ibv_qp_type qp_type(const std::string& type) {
  return type == "rc"         ? IBV_QPT_RC
         : type == "uc"       ? IBV_QPT_UC
         : type == "ud"       ? IBV_QPT_UD
         : type == "xrc_send" ? IBV_QPT_XRC_SEND
                              : IBV_QPT_XRC_RECV;
}

ibv_wr_opcode work_opcode(uint32_t number) {
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND,
                                        IBV_WR_SEND_WITH_IMM,
                                        IBV_WR_SEND_WITH_INV,
                                        IBV_WR_RDMA_WRITE,
                                        IBV_WR_RDMA_WRITE_WITH_IMM,
                                        IBV_WR_RDMA_READ,
                                        IBV_WR_ATOMIC_CMP_AND_SWP,
                                        IBV_WR_ATOMIC_FETCH_AND_ADD,
                                        IBV_WR_BIND_MW,
                                        IBV_WR_LOCAL_INV,
                                        IBV_WR_DRIVER1};
  return kOpcodes[number];
}

void never_wait(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

ibv_sge sge_of(const std::optional<Element>& element) {
  if (!element) return {};
  return {.addr = element->address, .length = element->bytes, .lkey = element->lkey};
}

template <class T>
std::string name_in(const std::map<std::string, Ibv<T>>& made, const T* wanted) {
  for (const auto& [name, object] : made)
    if (object.get() == wanted) return name;
  return {};
}

}  // namespace

IbvProgram::IbvProgram(const std::string& name, const IpAddress& own, const IpAddress& peer)
    : peer_(peer) {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  for (int i = 0; i < count && !context_; ++i)
    if (name.empty() || name == ibv_get_device_name(devices[i])) open(devices[i], own);
  if (devices != nullptr) ibv_free_device_list(devices);
  if (!context_) throw std::runtime_error("no device here has a RoCE v2 GID for the address");
  never_wait(context_->async_fd);
  pd_.reset(ibv_alloc_pd(context_.get()));
  if (!pd_ || make_cq(kDefaultCq, kDefaultDepth) != 0)
    throw std::runtime_error("the device gives no CQ");
}

bool IbvProgram::open(ibv_device* device, const IpAddress& own) {
  context_.reset(ibv_open_device(device));
  ibv_port_attr port{};
  if (context_ && ibv_query_port(context_.get(), kPort, &port) == 0)
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      ibv_gid_entry entry{};
      const bool known =
          ibv_query_gid_ex(context_.get(), kPort, static_cast<uint32_t>(i), &entry, 0) == 0;
      if (!known || entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
      if (std::memcmp(entry.gid.raw, own.bytes.data(), sizeof entry.gid.raw) != 0) continue;
      gid_index_ = static_cast<uint8_t>(i);
      return true;
    }
  context_.reset();
  return false;
}

// ---- queues and QPs ----

int IbvProgram::make_cq(const std::string& name, uint32_t depth) {
  Cq made;
  made.channel.reset(ibv_create_comp_channel(context_.get()));
  if (!made.channel) return errno;
  never_wait(made.channel->fd);
  made.cq.reset(
      ibv_create_cq(context_.get(), static_cast<int>(depth), nullptr, made.channel.get(), 0));
  if (!made.cq) return errno;
  cqs_[name] = std::move(made);
  return 0;
}

ibv_qp* IbvProgram::qp(const std::string& name) { return named(qps_, name, "QP").get(); }
ibv_srq* IbvProgram::srq(const std::string& name) { return named(srqs_, name, "SRQ").get(); }

ibv_xrcd* IbvProgram::xrcd() {
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  if (!xrcd_) xrcd_.reset(ibv_open_xrcd(context_.get(), &attr));
  return xrcd_.get();
}

int IbvProgram::make_qp(const QpRequest& request, uint32_t& qpn) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = qp_type(request.type);
  attr.send_cq = named(cqs_, request.send_cq, "CQ").cq.get();
  attr.recv_cq = named(cqs_, request.receive_cq, "CQ").cq.get();
  attr.cap.max_send_wr = request.send_wr;
  attr.cap.max_recv_wr = request.receive_wr;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = kInlineBytes;
  attr.sq_sig_all = request.signals_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd_.get();
  if (!request.srq.empty()) attr.srq = srq(request.srq);
  if (request.type == "xrc_recv") {
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd();
    if (attr.xrcd == nullptr) return errno;
  }
  Ibv<ibv_qp> made(ibv_create_qp_ex(context_.get(), &attr));
  if (!made) return errno;
  qpn = made->qp_num;
  qps_[request.name] = std::move(made);
  return 0;
}

ibv_ah_attr IbvProgram::path() const {
  ibv_ah_attr ah{};
  ah.is_global = 1;
  ah.port_num = kPort;
  ah.grh.hop_limit = 64;
  ah.grh.sgid_index = gid_index_;
  std::memcpy(ah.grh.dgid.raw, peer_.bytes.data(), sizeof ah.grh.dgid.raw);
  return ah;
}

int IbvProgram::change_qp(const std::string& name, const QpSettings& settings) {
  ibv_qp_attr attr{};
  attr.qp_state = static_cast<ibv_qp_state>(settings.state);
  attr.port_num = kPort;
  attr.qp_access_flags = settings.access;
  attr.qkey = settings.qkey;
  attr.path_mtu = static_cast<ibv_mtu>(settings.path_mtu);
  attr.ah_attr = path();
  attr.rq_psn = settings.rq_psn;
  attr.sq_psn = settings.sq_psn;
  attr.dest_qp_num = settings.dest_qpn;
  attr.max_rd_atomic = settings.max_rd_atomic;
  attr.max_dest_rd_atomic = settings.max_dest_rd_atomic;
  attr.min_rnr_timer = settings.min_rnr_timer;
  attr.timeout = settings.timeout;
  attr.retry_cnt = settings.retry_cnt;
  attr.rnr_retry = settings.rnr_retry;
  attr.en_sqd_async_notify = settings.sqd_event;
  return ibv_modify_qp(qp(name), &attr, static_cast<int>(settings.mask));
}

QpLook IbvProgram::look_at(const std::string& name) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  constexpr int kMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER;
  if (ibv_query_qp(qp(name), &attr, kMask, &init) != 0) throw Impossible("ibv_query_qp fails");
  return {.state = attr.qp_state,
          .draining = attr.sq_draining != 0,
          .timeout = attr.timeout,
          .retry_cnt = attr.retry_cnt,
          .rnr_retry = attr.rnr_retry,
          .min_rnr_timer = attr.min_rnr_timer};
}

int IbvProgram::drop_qp(const std::string& name) {
  qp(name);
  qps_.erase(name);
  return 0;
}

int IbvProgram::make_srq(const SrqRequest& request, uint32_t& number) {
  ibv_srq_init_attr_ex attr{};
  attr.attr.max_wr = request.max_wr;
  attr.attr.max_sge = 1;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.pd = pd_.get();
  attr.srq_type = IBV_SRQT_BASIC;
  if (request.xrc) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.xrcd = xrcd();
    attr.cq = cqs_.at(kDefaultCq).cq.get();
    if (attr.xrcd == nullptr) return errno;
  }
  Ibv<ibv_srq> made(ibv_create_srq_ex(context_.get(), &attr));
  if (!made) return errno;
  if (request.xrc && ibv_get_srq_num(made.get(), &number) != 0) return errno;
  srqs_[request.name] = std::move(made);
  return 0;
}

int IbvProgram::limit_srq(const std::string& name, uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  return ibv_modify_srq(srq(name), &attr, IBV_SRQ_LIMIT);
}

// ---- memory ----

int IbvProgram::make_region(const RegionRequest& request, RegionKeys& keys) {
  Ibv<ibv_mr> made(ibv_reg_mr(pd_.get(), memory().at(request.address, request.bytes), request.bytes,
                              static_cast<int>(request.access)));
  if (!made) return errno;
  keys = {made->rkey, made->lkey};
  regions_[request.name] = std::move(made);
  return 0;
}

int IbvProgram::drop_region(const std::string& region) {
  const int error = ibv_dereg_mr(named(regions_, region, "region").get());
  if (error != 0) return error;
  (void)regions_[region].release();  // it is gone
  regions_.erase(region);
  return 0;
}

int IbvProgram::make_window(const std::string& name, bool of_type_1, uint32_t& rkey) {
  Ibv<ibv_mw> made(ibv_alloc_mw(pd_.get(), of_type_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2));
  if (!made) return errno;
  rkey = made->rkey;
  windows_[name] = std::move(made);
  return 0;
}

int IbvProgram::drop_window(const std::string& window) {
  const int error = ibv_dealloc_mw(named(windows_, window, "window").get());
  if (error != 0) return error;
  (void)windows_[window].release();  // it is gone
  windows_.erase(window);
  return 0;
}

// ---- work ----

int IbvProgram::receive(const std::string& name, const ReceiveRequest& request) {
  ibv_sge sge = sge_of(request.element);
  ibv_recv_wr work{
      .wr_id = request.wr_id, .next = nullptr, .sg_list = &sge, .num_sge = request.element ? 1 : 0};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp(name), &work, &bad);
}

int IbvProgram::receive_shared(const std::string& name, const ReceiveRequest& request) {
  ibv_sge sge = sge_of(request.element);
  ibv_recv_wr work{
      .wr_id = request.wr_id, .next = nullptr, .sg_list = &sge, .num_sge = request.element ? 1 : 0};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(srq(name), &work, &bad);
}

void IbvProgram::fill_bind(const SendRequest& request, ibv_send_wr& work) {
  work.num_sge = 0;
  work.bind_mw.mw = named(windows_, request.binding.window, "window").get();
  work.bind_mw.rkey = request.key;
  work.bind_mw.bind_info.mr = named(regions_, request.binding.region, "region").get();
  work.bind_mw.bind_info.addr = request.element->address;
  work.bind_mw.bind_info.length = request.element->bytes;
  work.bind_mw.bind_info.mw_access_flags = request.binding.access;
}

int IbvProgram::fill(const std::string& name, const SendRequest& request, ibv_send_wr& work) {
  switch (work.opcode) {
    case IBV_WR_BIND_MW:
      fill_bind(request, work);
      return 0;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      work.invalidate_rkey = request.key;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      work.wr.atomic.remote_addr = request.remote_address;
      work.wr.atomic.rkey = request.key;
      work.wr.atomic.compare_add = request.compare_add;
      work.wr.atomic.swap = request.swap;
      break;
    case IBV_WR_DRIVER1:
      return EOPNOTSUPP;  // an atomic write has no place in struct ibv_send_wr
    default:
      work.wr.rdma.remote_addr = request.remote_address;
      work.wr.rdma.rkey = request.key;
      work.imm_data = request.immediate;
      break;
  }
  work.qp_type.xrc.remote_srqn = request.srqn;
  if (type_of(name) != "ud") return 0;
  ibv_ah_attr attr = path();
  if (!ah_) ah_.reset(ibv_create_ah(pd_.get(), &attr));
  if (!ah_) return errno;
  work.wr.ud.ah = ah_.get();
  work.wr.ud.remote_qpn = request.to_qpn;
  work.wr.ud.remote_qkey = request.to_qkey;
  return 0;
}

int IbvProgram::send(const std::string& name, const SendRequest& request) {
  ibv_qp* const from = qp(name);
  ibv_sge sge = sge_of(request.element);
  ibv_send_wr work{};
  work.wr_id = request.wr_id;
  work.opcode = work_opcode(request.opcode);
  work.sg_list = &sge;
  work.num_sge = request.element ? 1 : 0;
  if (request.signaled) work.send_flags |= IBV_SEND_SIGNALED;
  if (request.solicited) work.send_flags |= IBV_SEND_SOLICITED;
  if (request.fence) work.send_flags |= IBV_SEND_FENCE;
  if (request.inlined) work.send_flags |= IBV_SEND_INLINE;
  if (const int error = fill(name, request, work)) return error;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(from, &work, &bad);
}

// ---- what has come ----

std::optional<CompletionText> IbvProgram::poll(const std::string& cq) {
  ibv_wc wc{};
  if (ibv_poll_cq(named(cqs_, cq, "CQ").cq.get(), 1, &wc) <= 0) return std::nullopt;
  const std::string from = name_of(wc.qp_num);
  // A GRH is told of for datagrams alone (ibv_poll_cq(3)); some devices set the flag for others,
  // too.
  const bool is_datagram = qps_.contains(from) && type_of(from) == "ud";
  const bool invalidated = (wc.wc_flags & IBV_WC_WITH_INV) != 0;
  return CompletionText{.status = wc.status,
                        .opcode = wc.opcode,
                        .wr_id = wc.wr_id,
                        .qp = from,
                        .byte_length = wc.byte_len,
                        .has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0,
                        .has_invalidated = invalidated,
                        .has_grh = is_datagram && (wc.wc_flags & IBV_WC_GRH) != 0,
                        .immediate = invalidated ? wc.invalidated_rkey : network_order(wc.imm_data),
                        .source_qp = wc.src_qp};
}

int IbvProgram::arm(const std::string& cq, bool solicited_only) {
  return ibv_req_notify_cq(named(cqs_, cq, "CQ").cq.get(), solicited_only ? 1 : 0);
}

bool IbvProgram::take_cq_event(const std::string& cq) {
  ibv_cq* woken = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(named(cqs_, cq, "CQ").channel.get(), &woken, &context) != 0) return false;
  ibv_ack_cq_events(woken, 1);
  return true;
}

std::optional<ProgramEvent> IbvProgram::take_event() {
  ibv_async_event event{};
  if (ibv_get_async_event(context_.get(), &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  ProgramEvent taken{.type = event.event_type, .object = "qp", .name = {}};
  if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
    taken.object = "srq";
    taken.name = name_in(srqs_, event.element.srq);
  } else if (event.event_type != IBV_EVENT_CQ_ERR) {
    taken.name = name_in(qps_, event.element.qp);
  }
  return taken;
}

}  // namespace rocemu::script
