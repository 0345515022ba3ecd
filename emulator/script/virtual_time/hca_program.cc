#include "emulator/script/virtual_time/hca_program.h"

#include <cerrno>
#include <cstring>

#include "base/verbs/numbers.h"

namespace rocemu::script {

using transport::QpState;

namespace {

constexpr uint64_t kMemoryBase = 0x100000;

uint32_t qp_type(const std::string& type) {
  using namespace verbs::qp_type;
  return type == "rc"         ? kRc
         : type == "uc"       ? kUc
         : type == "ud"       ? kUd
         : type == "xrc_send" ? kXrcSend
                              : kXrcReceive;
}

transport::WorkOpcode work_opcode(uint32_t number) {
  using enum transport::WorkOpcode;
  constexpr transport::WorkOpcode kOpcodes[] = {
      send,      send_imm,    send_invalidate,  write,       write_imm, read, compare_swap,
      fetch_add, bind_window, local_invalidate, atomic_write};
  return kOpcodes[number];
}

device::AhAttr path_to(const wire::Gid& gid) {
  device::AhAttr ah;
  ah.port_num = 1;
  ah.is_global = true;
  ah.hop_limit = 64;
  ah.dgid = gid;
  return ah;
}

std::vector<transport::Sge> sges_of(const std::optional<Element>& element) {
  if (!element) return {};
  return {{element->address, element->bytes, wire::LKey{element->lkey}}};
}

}  // namespace

HcaProgram::HcaProgram(sim::HcaNode& node, const wire::Gid& peer)
    : VerbsProgram(kMemoryBase), node_(node), hca_(node.hca()), peer_(peer) {
  context_ = *hca_.open_context(dma::AddressSpace::local(memory().all(), kMemoryBase),
                                std::make_unique<AsyncEvents>(async_events_));
  pd_ = *hca_.alloc_pd(context_);
  make_cq(kDefaultCq, kDefaultDepth);
}

// ---- queues and QPs ----

int HcaProgram::make_cq(const std::string& name, uint32_t depth) {
  Cq& cq = cqs_[name];
  const device::Handle channel =
      *hca_.create_channel(context_, std::make_unique<CompletionEvents>(cq.shown));
  const auto made =
      hca_.create_cq(context_, {depth, channel, 0, 0}, std::make_unique<Completions>(cq.shown));
  if (!made) return made.error();
  cq.handle = *made;
  return 0;
}

uint64_t HcaProgram::user_pointer(const std::string& kind, const std::string& name) {
  events_about_.emplace_back(kind, name);
  return events_about_.size() - 1;
}

void HcaProgram::make_xrcd() {
  device::XrcdSpec spec;
  spec.create = true;
  if (xrcd_ == 0) xrcd_ = *hca_.open_xrcd(context_, spec);
}

int HcaProgram::make_qp(const QpRequest& request, uint32_t& qpn) {
  device::QpSpec spec;
  spec.type = qp_type(request.type);
  spec.pd = pd_;
  spec.send_cq = named(cqs_, request.send_cq, "CQ").handle;
  spec.receive_cq = named(cqs_, request.receive_cq, "CQ").handle;
  spec.max_send_wr = request.send_wr;
  spec.max_recv_wr = request.receive_wr;
  spec.max_send_sge = spec.max_recv_sge = 1;
  spec.max_inline_data = kInlineBytes;
  if (!request.srq.empty()) spec.srq = named(srqs_, request.srq, "SRQ").handle;
  if (request.type == "xrc_recv") {
    make_xrcd();
    spec.xrcd = xrcd_;
  }
  spec.user_pointer = user_pointer("qp", request.name);
  auto queues = std::make_unique<Queues>(spec.max_send_wr);
  QpParts parts{.queues = queues.get(), .signals_all = request.signals_all};
  const auto made = hca_.create_qp(context_, spec, std::move(queues));
  if (!made) return made.error();
  parts.handle = made->qp;
  parts.qpn = made->qpn;
  qps_[request.name] = parts;
  qpn = parts.qpn.value;
  return 0;
}

int HcaProgram::change_qp(const std::string& qp, const QpSettings& settings) {
  device::QpAttr attr;
  attr.qp_state = settings.state;
  attr.port_num = 1;
  attr.qp_access_flags = settings.access;
  attr.qkey = settings.qkey;
  attr.path_mtu = settings.path_mtu;
  attr.ah = path_to(peer_);
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
  const auto changed = hca_.modify_qp(context_, named(qps_, qp, "QP").handle, settings.mask, attr);
  return changed ? 0 : changed.error();
}

QpState HcaProgram::state_of(const QpParts& qp) const {
  return static_cast<QpState>(hca_.query_qp(context_, qp.handle)->qp_state);
}

QpLook HcaProgram::look_at(const std::string& qp) {
  const device::QpAttr attr = *hca_.query_qp(context_, named(qps_, qp, "QP").handle);
  return {.state = attr.qp_state,
          .draining = attr.sq_draining,
          .timeout = attr.timeout,
          .retry_cnt = attr.retry_cnt,
          .rnr_retry = attr.rnr_retry,
          .min_rnr_timer = attr.min_rnr_timer};
}

int HcaProgram::drop_qp(const std::string& qp) {
  const auto destroyed = hca_.destroy_qp(context_, named(qps_, qp, "QP").handle);
  if (!destroyed) return destroyed.error();
  qps_.erase(qp);
  return 0;
}

int HcaProgram::make_srq(const SrqRequest& request, uint32_t& number) {
  device::SrqSpec spec;
  spec.pd = pd_;
  spec.xrc = request.xrc;
  spec.max_wr = request.max_wr;
  spec.max_sge = 1;
  if (spec.xrc) {
    make_xrcd();
    spec.xrcd = xrcd_;
    spec.cq = cqs_.at(kDefaultCq).handle;
  }
  spec.user_pointer = user_pointer("srq", request.name);
  auto receives = std::make_unique<SharedReceives>();
  SrqParts parts{0, receives.get()};
  const auto made = hca_.create_srq(context_, spec, std::move(receives));
  if (!made) return made.error();
  parts.handle = made->srq;
  srqs_[request.name] = parts;
  number = made->number.value;
  return 0;
}

int HcaProgram::limit_srq(const std::string& srq, uint32_t limit) {
  return hca_.set_srq_limit(context_, named(srqs_, srq, "SRQ").handle, limit);
}

// ---- memory ----

int HcaProgram::make_region(const RegionRequest& request, RegionKeys& keys) {
  const auto made =
      hca_.reg_mr(context_, {pd_, request.access, request.address, request.bytes, request.address});
  if (!made) return made.error();
  keys = {made->rkey.value, made->lkey.value};
  regions_[request.name] = {made->mr, keys.lkey};
  return 0;
}

int HcaProgram::drop_region(const std::string& region) {
  return hca_.dereg_mr(context_, named(regions_, region, "region").handle);
}

int HcaProgram::make_window(const std::string& name, bool of_type_1, uint32_t& rkey) {
  const auto made = hca_.alloc_mw(context_, pd_, of_type_1 ? 1 : 2);
  if (!made) return made.error();
  windows_[name] = made->mr;
  rkey = made->rkey.value;
  return 0;
}

int HcaProgram::drop_window(const std::string& window) {
  return hca_.dealloc_mw(context_, named(windows_, window, "window"));
}

// ---- work ----

int HcaProgram::receive(const std::string& qp, const ReceiveRequest& request) {
  const QpParts& parts = named(qps_, qp, "QP");
  if (state_of(parts) == QpState::reset) return EINVAL;
  parts.queues->receives.post({.wr_id = request.wr_id, .sges = sges_of(request.element)});
  node_.ring(parts.qpn);
  return 0;
}

int HcaProgram::receive_shared(const std::string& srq, const ReceiveRequest& request) {
  named(srqs_, srq, "SRQ")
      .receives->post({.wr_id = request.wr_id, .sges = sges_of(request.element)});
  return 0;
}

uint32_t HcaProgram::address_handle() {
  if (ah_ == 0) ah_ = *hca_.create_ah(context_, pd_, path_to(peer_));
  return ah_;
}

sim::SendRequest HcaProgram::work_of(const SendRequest& request) {
  sim::SendRequest work;
  work.wr_id = request.wr_id;
  work.opcode = work_opcode(request.opcode);
  work.signaled = request.signaled;
  work.solicited = request.solicited;
  work.fence = request.fence;
  work.immediate = request.immediate;
  work.remote_address = request.remote_address;
  work.rkey = request.key;
  work.compare_add = request.compare_add;
  work.swap = request.swap;
  work.remote_srq = wire::Qpn{request.srqn};
  if (work.opcode == transport::WorkOpcode::bind_window) {
    work.binding = {wire::RKey{request.key},
                    wire::LKey{named(regions_, request.binding.region, "region").lkey},
                    request.element->address, request.element->bytes, request.binding.access};
    return work;
  }
  work.sges = sges_of(request.element);
  if (request.inlined && request.element) {
    const std::byte* const from = memory().at(request.element->address, request.element->bytes);
    work.inline_payload = std::vector<std::byte>(from, from + request.element->bytes);
  }
  return work;
}

int HcaProgram::send(const std::string& qp, const SendRequest& request) {
  const QpParts& parts = named(qps_, qp, "QP");
  if (state_of(parts) < QpState::ready_to_send) return EINVAL;
  sim::SendRequest work = work_of(request);
  if (parts.signals_all) work.signaled = true;
  if (type_of(qp) == "ud") {
    work.address_handle = address_handle();
    work.remote_qpn = wire::Qpn{request.to_qpn};
    work.remote_qkey = request.to_qkey;
  }
  if (!parts.queues->sends.post(std::move(work))) return ENOMEM;
  node_.ring(parts.qpn);
  return 0;
}

// ---- what has come ----

std::optional<CompletionText> HcaProgram::poll(const std::string& cq) {
  Shown& shown = named(cqs_, cq, "CQ").shown;
  if (shown.completions.empty()) return std::nullopt;
  const transport::Completion completion = shown.completions.front();
  shown.completions.pop_front();
  if (const auto& data = completion.inline_data; data.length_bytes > 0)
    std::memcpy(memory().at(data.address, data.length_bytes), data.bytes.data(), data.length_bytes);
  return CompletionText{.status = static_cast<uint32_t>(completion.status),
                        .opcode = static_cast<uint32_t>(completion.opcode),
                        .wr_id = completion.wr_id,
                        .qp = name_of(completion.qpn.value),
                        .byte_length = completion.byte_length,
                        .has_immediate = completion.has_immediate,
                        .has_invalidated = completion.has_invalidated,
                        .has_grh = completion.has_grh,
                        .immediate = completion.has_invalidated
                                         ? completion.immediate
                                         : network_order(completion.immediate),
                        .source_qp = completion.source_qp.value};
}

int HcaProgram::arm(const std::string& cq, bool solicited_only) {
  named(cqs_, cq, "CQ").shown.armed = solicited_only ? Shown::Armed::solicited : Shown::Armed::any;
  return 0;
}

bool HcaProgram::take_cq_event(const std::string& cq) {
  Shown& shown = named(cqs_, cq, "CQ").shown;
  if (shown.events == 0) return false;
  --shown.events;
  return true;
}

std::optional<ProgramEvent> HcaProgram::take_event() {
  if (async_events_.empty()) return std::nullopt;
  const AsyncEvent event = async_events_.front();
  async_events_.pop_front();
  const auto& [kind, name] = events_about_.at(event.element);
  return ProgramEvent{event.type, kind, name};
}

}  // namespace rocemu::script
