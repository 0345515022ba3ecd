#include "emulator/script/virtual_time/hca_program.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/verbs/numbers.h"
#include "emulator/script/language/vocabulary.h"
#include "emulator/script/play/program.h"

namespace rocemu::script {

namespace {

constexpr uint64_t kRegionAlignment = 4096;
constexpr uint32_t kDepth = 256;
constexpr const char* kCq = "cq";

uint32_t qp_type(const std::string& type) {
  using namespace verbs::qp_type;
  return type == "rc"         ? kRc
         : type == "uc"       ? kUc
         : type == "ud"       ? kUd
         : type == "xrc_send" ? kXrcSend
                              : kXrcReceive;
}

transport::WorkOpcode work_opcode(const std::string& name) {
  using enum transport::WorkOpcode;
  constexpr transport::WorkOpcode kOpcodes[] = {
      send,      send_imm,    send_invalidate,  write,       write_imm, read, compare_swap,
      fetch_add, bind_window, local_invalidate, atomic_write};
  return kOpcodes[index_of(kSendOpcodes, name)];
}

device::AhAttr path_to(const wire::Gid& gid) {
  device::AhAttr ah;
  ah.port_num = 1;
  ah.is_global = true;
  ah.hop_limit = 64;
  ah.dgid = gid;
  return ah;
}

}  // namespace

HcaProgram::HcaProgram(sim::HcaNode& node, const wire::Gid& peer)
    : node_(node), hca_(node.hca()), peer_(peer) {
  context_ = *hca_.open_context(dma::AddressSpace::local(memory_.all(), ProgramMemory::kBase),
                                std::make_unique<AsyncEvents>(async_events_));
  pd_ = *hca_.alloc_pd(context_);
  make_cq(kCq, kDepth);
}

const std::map<std::string, HcaProgram::Handler>& HcaProgram::handlers() {
  static const std::map<std::string, Handler> all = {
      {"create_cq", &HcaProgram::create_cq},
      {"create_qp", &HcaProgram::create_qp},
      {"modify_qp", &HcaProgram::modify_qp},
      {"connect", &HcaProgram::connect},
      {"query_qp", &HcaProgram::query_qp},
      {"destroy_qp", &HcaProgram::destroy_qp},
      {"reg_mr", &HcaProgram::reg_mr},
      {"dereg_mr", &HcaProgram::dereg_mr},
      {"alloc_mw", &HcaProgram::alloc_mw},
      {"dealloc_mw", &HcaProgram::dealloc_mw},
      {"create_srq", &HcaProgram::create_srq},
      {"modify_srq", &HcaProgram::modify_srq},
      {"post_srq_recv", &HcaProgram::post_srq_recv},
      {"post_recv", &HcaProgram::post_recv},
      {"post_send", &HcaProgram::post_send},
      {"poll_cq", &HcaProgram::poll_cq},
      {"req_notify_cq", &HcaProgram::req_notify_cq},
      {"get_cq_event", &HcaProgram::get_cq_event},
      {"get_async_event", &HcaProgram::get_async_event},
      {"memory", &HcaProgram::memory},
      {"set_memory", &HcaProgram::set_memory}};
  return all;
}

Fields HcaProgram::call(const Call& call) {
  const Fields result = (this->*handlers().at(call.verb))(call.arguments);
  objects_.learn(call, result);
  // What only looks at something gives the NIC nothing to do.
  if (!shows_state(call.verb) && !takes_off(call.verb)) node_.wake();
  return result;
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

Fields HcaProgram::create_cq(const Fields& arguments) {
  return result_of(
      make_cq(arguments.text("CQ"), static_cast<uint32_t>(arguments.number("depth", kDepth))));
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

Fields HcaProgram::create_qp(const Fields& arguments) {
  QpParts parts;
  parts.type = arguments.text("TYPE");
  parts.signals_all = arguments.has("sq_sig_all");
  device::QpSpec spec;
  spec.type = qp_type(parts.type);
  spec.pd = pd_;
  spec.send_cq = cq(arguments, "send_cq").handle;
  spec.receive_cq = cq(arguments, "recv_cq").handle;
  spec.max_send_wr = static_cast<uint32_t>(arguments.number("send_wr", kDepth));
  spec.max_recv_wr = static_cast<uint32_t>(arguments.number("recv_wr", kDepth));
  spec.max_send_sge = spec.max_recv_sge = 1;
  spec.max_inline_data = 256;
  if (arguments.has("srq")) {
    const auto srq = srqs_.find(arguments.text("srq"));
    if (srq == srqs_.end()) throw Impossible("there is no SRQ '" + arguments.text("srq") + "'");
    spec.srq = srq->second.handle;
  }
  if (parts.type == "xrc_recv") {
    make_xrcd();
    spec.xrcd = xrcd_;
  }
  const std::string name = arguments.text("QP");
  spec.user_pointer = user_pointer("qp", name);
  auto queues = std::make_unique<Queues>(spec.max_send_wr);
  parts.queues = queues.get();
  const auto made = hca_.create_qp(context_, spec, std::move(queues));
  if (!made) return result_of(made.error());
  parts.handle = made->qp;
  parts.qpn = made->qpn;
  qps_[name] = parts;
  Fields result = result_of(0);
  result.add("qpn", parts.qpn.value);
  return result;
}

HcaProgram::QpParts& HcaProgram::qp(const Fields& arguments) {
  const auto found = qps_.find(arguments.text("QP"));
  if (found == qps_.end()) throw Impossible("there is no QP '" + arguments.text("QP") + "'");
  return found->second;
}

HcaProgram::Cq& HcaProgram::cq(const Fields& arguments, const char* key) {
  const auto found = cqs_.find(arguments.text(key, kCq));
  if (found == cqs_.end()) throw Impossible("there is no CQ '" + arguments.text(key) + "'");
  return found->second;
}

int HcaProgram::apply(QpParts& parts, const QpSettings& settings) {
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
  const auto changed = hca_.modify_qp(context_, parts.handle, settings.mask, attr);
  return changed ? 0 : changed.error();
}

std::string HcaProgram::state(const QpParts& parts) {
  return std::string(word_at(kQpStates, hca_.query_qp(context_, parts.handle)->qp_state));
}

Fields HcaProgram::modify_qp(const Fields& arguments) {
  QpParts& parts = qp(arguments);
  const std::string to = arguments.text("STATE");
  const wire::Qpn wire_qpn = objects_.qp(arguments.text("QP")).wire_qpn;
  return result_of(apply(
      parts, settings_of(arguments, parts.type, to, to.empty() ? "" : state(parts), wire_qpn)));
}

Fields HcaProgram::connect(const Fields& arguments) {
  QpParts& parts = qp(arguments);
  const wire::Qpn wire_qpn = objects_.qp(arguments.text("QP")).wire_qpn;
  for (const char* to : {"init", "rtr", "rts"})
    if (const int error =
            apply(parts, settings_of(arguments, parts.type, to, state(parts), wire_qpn)))
      return result_of(error);
  return result_of(0);
}

Fields HcaProgram::query_qp(const Fields& arguments) {
  const device::QpAttr attr = *hca_.query_qp(context_, qp(arguments).handle);
  Fields result = result_word(std::string(word_at(kQpStates, attr.qp_state)));
  result.add("sq_draining", attr.sq_draining);
  result.add("timeout", attr.timeout);
  result.add("retry_cnt", attr.retry_cnt);
  result.add("rnr_retry", attr.rnr_retry);
  result.add("min_rnr_timer", attr.min_rnr_timer);
  return result;
}

Fields HcaProgram::destroy_qp(const Fields& arguments) {
  const auto destroyed = hca_.destroy_qp(context_, qp(arguments).handle);
  if (!destroyed) return result_of(destroyed.error());
  qps_.erase(arguments.text("QP"));
  return result_of(0);
}

Fields HcaProgram::create_srq(const Fields& arguments) {
  const std::string name = arguments.text("SRQ");
  device::SrqSpec spec;
  spec.pd = pd_;
  spec.xrc = arguments.has("xrc");
  spec.max_wr = static_cast<uint32_t>(arguments.number("wr", kDepth));
  spec.max_sge = 1;
  if (spec.xrc) {
    make_xrcd();
    spec.xrcd = xrcd_;
    spec.cq = cqs_.at(kCq).handle;
  }
  spec.user_pointer = user_pointer("srq", name);
  auto receives = std::make_unique<SharedReceives>();
  SrqParts parts{0, receives.get()};
  const auto made = hca_.create_srq(context_, spec, std::move(receives));
  if (!made) return result_of(made.error());
  parts.handle = made->srq;
  srqs_[name] = parts;
  Fields result = result_of(0);
  result.add("rkey", made->number.value);
  return result;
}

Fields HcaProgram::modify_srq(const Fields& arguments) {
  const auto srq = srqs_.find(arguments.text("SRQ"));
  if (srq == srqs_.end()) throw Impossible("there is no SRQ '" + arguments.text("SRQ") + "'");
  return result_of(hca_.set_srq_limit(context_, srq->second.handle,
                                      static_cast<uint32_t>(arguments.number("limit", 0))));
}

// ---- memory ----

uint64_t ProgramMemory::allocate(uint64_t bytes) {
  if (bytes > kBytes - used_bytes_) throw Impossible("4 MiB of memory are all there is");
  const uint64_t address = kBase + used_bytes_;
  used_bytes_ += (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  return address;
}

std::byte* ProgramMemory::at(uint64_t address, size_t bytes) {
  if (address < kBase || bytes > kBytes || address - kBase > kBytes - bytes)
    throw Impossible("the program has no memory there");
  return bytes_.data() + (address - kBase);
}

Fields HcaProgram::reg_mr(const Fields& arguments) {
  const uint64_t bytes = arguments.number("bytes", kRegionAlignment);
  const uint64_t address = memory_.allocate(bytes);
  const std::string access =
      arguments.text("access", "local_write|remote_write|remote_read|remote_atomic|mw_bind");
  const auto keys = hca_.reg_mr(context_, {pd_, access_bits(access), address, bytes, address});
  if (!keys) return result_of(keys.error());
  if (const Value* filled = arguments.find("filled")) {
    const std::vector<std::byte> with = filled->make_bytes();
    std::copy_n(with.begin(), std::min<size_t>(with.size(), bytes), memory_.at(address, bytes));
  }
  regions_[arguments.text("MR")] = keys->mr;
  Fields result = result_of(0);
  result.add("va", address);
  result.add("rkey", keys->rkey.value);
  result.add("lkey", keys->lkey.value);
  return result;
}

Fields HcaProgram::dereg_mr(const Fields& arguments) {
  return result_of(hca_.dereg_mr(context_, regions_[arguments.text("MR")]));
}

Fields HcaProgram::alloc_mw(const Fields& arguments) {
  const auto keys = hca_.alloc_mw(context_, pd_, arguments.text("TYPE") == "type1" ? 1 : 2);
  if (!keys) return result_of(keys.error());
  regions_[arguments.text("MW")] = keys->mr;
  Fields result = result_of(0);
  result.add("rkey", keys->rkey.value);
  return result;
}

Fields HcaProgram::dealloc_mw(const Fields& arguments) {
  return result_of(hca_.dealloc_mw(context_, regions_[arguments.text("MW")]));
}

Fields HcaProgram::memory(const Fields& arguments) {
  const uint64_t address = objects_.address(*arguments.find("PLACE"));
  const size_t bytes = arguments.number("bytes", sizeof(uint64_t));
  const std::byte* const from = memory_.at(address, bytes);
  return result_bytes({from, from + bytes});
}

Fields HcaProgram::set_memory(const Fields& arguments) {
  const std::vector<std::byte> bytes = arguments.find("BYTES")->make_bytes();
  std::ranges::copy(bytes, memory_.at(objects_.address(*arguments.find("PLACE")), bytes.size()));
  return result_of(0);
}

// ---- work ----

std::vector<transport::Sge> HcaProgram::sges(const Fields& arguments) const {
  const Value* place = arguments.find("at");
  if (place == nullptr) return {};
  const Value* lkey = arguments.find("lkey");
  const uint32_t key = lkey != nullptr                    ? objects_.key(*lkey)
                       : place->kind == Value::Kind::name ? objects_.numbers(place->text).lkey
                                                          : 0;
  return {{objects_.address(*place), static_cast<uint32_t>(arguments.number("len", 0)),
           wire::LKey{key}}};
}

Fields HcaProgram::post_recv(const Fields& arguments) {
  QpParts& parts = qp(arguments);
  if (state(parts) == "reset") return result_of(EINVAL);
  parts.queues->receives.post({.wr_id = arguments.number("wr_id", 0), .sges = sges(arguments)});
  node_.ring(parts.qpn);
  return result_of(0);
}

Fields HcaProgram::post_srq_recv(const Fields& arguments) {
  const auto srq = srqs_.find(arguments.text("SRQ"));
  if (srq == srqs_.end()) throw Impossible("there is no SRQ '" + arguments.text("SRQ") + "'");
  srq->second.receives->post({.wr_id = arguments.number("wr_id", 0), .sges = sges(arguments)});
  return result_of(0);
}

uint32_t HcaProgram::address_handle() {
  if (ah_ == 0) ah_ = *hca_.create_ah(context_, pd_, path_to(peer_));
  return ah_;
}

sim::SendRequest HcaProgram::send_request(const Fields& arguments) {
  const auto key = [&](const char* name) {
    const Value* value = arguments.find(name);
    return value == nullptr ? 0 : objects_.key(*value);
  };
  sim::SendRequest request;
  request.wr_id = arguments.number("wr_id", 0);
  request.opcode = work_opcode(arguments.text("OPCODE"));
  request.signaled = !arguments.has("unsignaled");
  request.solicited = arguments.has("solicited");
  request.fence = arguments.has("fence");
  request.immediate = network_order(static_cast<uint32_t>(arguments.number("imm", 0)));
  if (const Value* va = arguments.find("va")) request.remote_address = objects_.address(*va);
  request.rkey = arguments.has("inv") ? key("inv") : key("rkey");
  const bool adds = request.opcode == transport::WorkOpcode::fetch_add;
  request.compare_add = arguments.number(adds ? "add" : "compare", 0);
  request.swap = arguments.number("swap", 0);
  request.remote_srq = wire::Qpn{key("srqn")};
  request.sges = sges(arguments);
  if (arguments.has("inline") && !request.sges.empty()) {
    const transport::Sge& sge = request.sges.front();
    const std::byte* const from = memory_.at(sge.address, sge.length_bytes);
    request.inline_payload = std::vector<std::byte>(from, from + sge.length_bytes);
  }
  if (request.opcode == transport::WorkOpcode::bind_window) {
    const Numbers& region = objects_.numbers(arguments.text("mr"));
    if (request.sges.empty()) throw Impossible("a window is bound to a place, 'at'");
    request.binding = {wire::RKey{key("rkey")}, wire::LKey{region.lkey},
                       request.sges.front().address, request.sges.front().length_bytes,
                       access_bits(arguments.text("access", "remote_write|remote_read"))};
    request.sges.clear();
  }
  return request;
}

Fields HcaProgram::post_send(const Fields& arguments) {
  QpParts& parts = qp(arguments);
  const std::string now = state(parts);
  if (now == "reset" || now == "init" || now == "rtr") return result_of(EINVAL);
  sim::SendRequest request = send_request(arguments);
  if (parts.signals_all) request.signaled = true;
  if (parts.type == "ud") {
    request.address_handle = address_handle();
    const uint32_t peer = objects_.qp(arguments.text("QP")).wire_qpn.value;
    request.remote_qpn = wire::Qpn{static_cast<uint32_t>(arguments.number("dest_qp", peer))};
    request.remote_qkey = static_cast<uint32_t>(arguments.number("qkey", kDefaultQkey));
  }
  if (!parts.queues->sends.post(std::move(request))) return result_of(ENOMEM);
  node_.ring(parts.qpn);
  return result_of(0);
}

// ---- what has come ----

Fields HcaProgram::poll_cq(const Fields& arguments) {
  Shown& shown = cq(arguments).shown;
  if (shown.completions.empty()) return nothing();
  const transport::Completion completion = shown.completions.front();
  shown.completions.pop_front();
  if (const auto& data = completion.inline_data; data.length_bytes > 0)
    std::memcpy(memory_.at(data.address, data.length_bytes), data.bytes.data(), data.length_bytes);
  return result_completion({.status = static_cast<uint32_t>(completion.status),
                            .opcode = static_cast<uint32_t>(completion.opcode),
                            .wr_id = completion.wr_id,
                            .qp = objects_.name_of(completion.qpn),
                            .byte_length = completion.byte_length,
                            .has_immediate = completion.has_immediate,
                            .has_invalidated = completion.has_invalidated,
                            .has_grh = completion.has_grh,
                            .immediate = completion.has_invalidated
                                             ? completion.immediate
                                             : network_order(completion.immediate),
                            .source_qp = completion.source_qp.value});
}

Fields HcaProgram::req_notify_cq(const Fields& arguments) {
  cq(arguments).shown.armed =
      arguments.has("solicited_only") ? Shown::Armed::solicited : Shown::Armed::any;
  return result_of(0);
}

Fields HcaProgram::get_cq_event(const Fields& arguments) {
  Shown& shown = cq(arguments).shown;
  if (shown.events == 0) return nothing();
  --shown.events;
  return result_word("event");
}

Fields HcaProgram::get_async_event(const Fields&) {
  if (async_events_.empty()) return nothing();
  const AsyncEvent event = async_events_.front();
  async_events_.pop_front();
  const auto& [kind, name] = events_about_.at(event.element);
  return result_event(event.type, kind, name);
}

}  // namespace rocemu::script
