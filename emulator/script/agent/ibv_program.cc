#include "emulator/script/agent/ibv_program.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "emulator/script/language/vocabulary.h"
#include "emulator/script/play/program.h"

namespace rocemu::script {

namespace {

constexpr size_t kMemoryBytes = 4 << 20;
constexpr size_t kRegionAlignment = 4096;
constexpr int kDepth = 64;
constexpr uint32_t kMaxInlineBytes = 64;
constexpr uint8_t kPort = 1;
constexpr const char* kCq = "cq";

ibv_qp_type qp_type(const std::string& type) {
  return type == "rc"         ? IBV_QPT_RC
         : type == "uc"       ? IBV_QPT_UC
         : type == "ud"       ? IBV_QPT_UD
         : type == "xrc_send" ? IBV_QPT_XRC_SEND
                              : IBV_QPT_XRC_RECV;
}

ibv_wr_opcode work_opcode(const std::string& name) {
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
  return kOpcodes[index_of(kSendOpcodes, name)];
}

void never_wait(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

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
  void* const memory = std::aligned_alloc(kRegionAlignment, kMemoryBytes);
  memory_.reset(static_cast<std::byte*>(memory));
  std::memset(memory, 0, kMemoryBytes);
  pd_.reset(ibv_alloc_pd(context_.get()));
  if (!pd_ || make_cq(kCq, kDepth) != 0) throw std::runtime_error("the device gives no CQ");
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

const std::map<std::string, IbvProgram::Handler>& IbvProgram::handlers() {
  static const std::map<std::string, Handler> all = {
      {"create_cq", &IbvProgram::create_cq},
      {"create_qp", &IbvProgram::create_qp},
      {"modify_qp", &IbvProgram::modify_qp},
      {"connect", &IbvProgram::connect},
      {"query_qp", &IbvProgram::query_qp},
      {"destroy_qp", &IbvProgram::destroy_qp},
      {"reg_mr", &IbvProgram::reg_mr},
      {"dereg_mr", &IbvProgram::dereg_mr},
      {"alloc_mw", &IbvProgram::alloc_mw},
      {"dealloc_mw", &IbvProgram::dealloc_mw},
      {"create_srq", &IbvProgram::create_srq},
      {"modify_srq", &IbvProgram::modify_srq},
      {"post_srq_recv", &IbvProgram::post_srq_recv},
      {"post_recv", &IbvProgram::post_recv},
      {"post_send", &IbvProgram::post_send},
      {"poll_cq", &IbvProgram::poll_cq},
      {"req_notify_cq", &IbvProgram::req_notify_cq},
      {"get_cq_event", &IbvProgram::get_cq_event},
      {"get_async_event", &IbvProgram::get_async_event},
      {"memory", &IbvProgram::memory},
      {"set_memory", &IbvProgram::set_memory}};
  return all;
}

Fields IbvProgram::call(const Call& call) {
  const Fields result = (this->*handlers().at(call.verb))(call.arguments);
  objects_.learn(call, result);
  return result;
}

// ---- queues and QPs ----

int IbvProgram::make_cq(const std::string& name, int depth) {
  Cq made;
  made.channel.reset(ibv_create_comp_channel(context_.get()));
  if (!made.channel) return errno;
  never_wait(made.channel->fd);
  made.cq.reset(ibv_create_cq(context_.get(), depth, nullptr, made.channel.get(), 0));
  if (!made.cq) return errno;
  cqs_[name] = std::move(made);
  return 0;
}

Fields IbvProgram::create_cq(const Fields& arguments) {
  return result_of(
      make_cq(arguments.text("CQ"), static_cast<int>(arguments.number("depth", kDepth))));
}

IbvProgram::Cq& IbvProgram::cq(const Fields& arguments, const char* key) {
  const auto found = cqs_.find(arguments.text(key, kCq));
  if (found == cqs_.end()) throw Impossible("there is no CQ '" + arguments.text(key) + "'");
  return found->second;
}

IbvProgram::Qp& IbvProgram::qp(const Fields& arguments) {
  const auto found = qps_.find(arguments.text("QP"));
  if (found == qps_.end()) throw Impossible("there is no QP '" + arguments.text("QP") + "'");
  return found->second;
}

ibv_srq* IbvProgram::srq(const std::string& name) {
  const auto found = srqs_.find(name);
  if (found == srqs_.end()) throw Impossible("there is no SRQ '" + name + "'");
  return found->second.get();
}

ibv_xrcd* IbvProgram::xrcd() {
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  if (!xrcd_) xrcd_.reset(ibv_open_xrcd(context_.get(), &attr));
  return xrcd_.get();
}

Fields IbvProgram::create_qp(const Fields& arguments) {
  const std::string type = arguments.text("TYPE");
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = qp_type(type);
  attr.send_cq = cq(arguments, "send_cq").cq.get();
  attr.recv_cq = cq(arguments, "recv_cq").cq.get();
  attr.cap.max_send_wr = static_cast<uint32_t>(arguments.number("send_wr", kDepth));
  attr.cap.max_recv_wr = static_cast<uint32_t>(arguments.number("recv_wr", kDepth));
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = kMaxInlineBytes;
  attr.sq_sig_all = arguments.has("sq_sig_all");
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd_.get();
  if (arguments.has("srq")) attr.srq = srq(arguments.text("srq"));
  if (type == "xrc_recv") {
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd();
    if (attr.xrcd == nullptr) return result_of(errno);
  }
  Qp made{Ibv<ibv_qp>(ibv_create_qp_ex(context_.get(), &attr)), type};
  if (!made.qp) return result_of(errno);
  Fields result = result_of(0);
  result.add("qpn", made.qp->qp_num);
  qps_[arguments.text("QP")] = std::move(made);
  return result;
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

int IbvProgram::apply(Qp& qp, const QpSettings& settings) {
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
  return ibv_modify_qp(qp.qp.get(), &attr, static_cast<int>(settings.mask));
}

std::string IbvProgram::state(const Qp& qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ibv_query_qp(qp.qp.get(), &attr, IBV_QP_STATE, &init);
  return std::string(word_at(kQpStates, attr.qp_state));
}

Fields IbvProgram::modify_qp(const Fields& arguments) {
  Qp& changed = qp(arguments);
  const std::string to = arguments.text("STATE");
  const wire::Qpn wire_qpn = objects_.qp(arguments.text("QP")).wire_qpn;
  return result_of(apply(changed, settings_of(arguments, changed.type, to,
                                              to.empty() ? "" : state(changed), wire_qpn)));
}

Fields IbvProgram::connect(const Fields& arguments) {
  Qp& connected = qp(arguments);
  const wire::Qpn wire_qpn = objects_.qp(arguments.text("QP")).wire_qpn;
  for (const char* to : {"init", "rtr", "rts"})
    if (const int error = apply(
            connected, settings_of(arguments, connected.type, to, state(connected), wire_qpn)))
      return result_of(error);
  return result_of(0);
}

Fields IbvProgram::query_qp(const Fields& arguments) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  constexpr int kMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_query_qp(qp(arguments).qp.get(), &attr, kMask, &init))
    return result_of(error);
  Fields result = result_word(std::string(word_at(kQpStates, attr.qp_state)));
  result.add("sq_draining", attr.sq_draining);
  result.add("timeout", attr.timeout);
  result.add("retry_cnt", attr.retry_cnt);
  result.add("rnr_retry", attr.rnr_retry);
  result.add("min_rnr_timer", attr.min_rnr_timer);
  return result;
}

Fields IbvProgram::destroy_qp(const Fields& arguments) {
  qp(arguments);
  qps_.erase(arguments.text("QP"));
  return result_of(0);
}

Fields IbvProgram::create_srq(const Fields& arguments) {
  ibv_srq_init_attr_ex attr{};
  attr.attr.max_wr = static_cast<uint32_t>(arguments.number("wr", kDepth));
  attr.attr.max_sge = 1;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.pd = pd_.get();
  attr.srq_type = IBV_SRQT_BASIC;
  if (arguments.has("xrc")) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.xrcd = xrcd();
    attr.cq = cqs_.at(kCq).cq.get();
    if (attr.xrcd == nullptr) return result_of(errno);
  }
  Srq made(ibv_create_srq_ex(context_.get(), &attr));
  if (!made) return result_of(errno);
  Fields result = result_of(0);
  uint32_t number = 0;
  if (arguments.has("xrc") && ibv_get_srq_num(made.get(), &number) == 0) result.add("rkey", number);
  srqs_[arguments.text("SRQ")] = std::move(made);
  return result;
}

Fields IbvProgram::modify_srq(const Fields& arguments) {
  ibv_srq_attr attr{};
  attr.srq_limit = static_cast<uint32_t>(arguments.number("limit", 0));
  return result_of(ibv_modify_srq(srq(arguments.text("SRQ")), &attr, IBV_SRQ_LIMIT));
}

// ---- memory ----

std::byte* IbvProgram::at(uint64_t address, size_t bytes) {
  const auto base = reinterpret_cast<uintptr_t>(memory_.get());
  if (address < base || bytes > kMemoryBytes || address - base > kMemoryBytes - bytes)
    throw Impossible("the program has no memory there");
  return memory_.get() + (address - base);
}

Fields IbvProgram::reg_mr(const Fields& arguments) {
  const size_t bytes = arguments.number("bytes", kRegionAlignment);
  if (bytes > kMemoryBytes - used_bytes_) throw Impossible("4 MiB of memory are all there is");
  std::byte* const address = memory_.get() + used_bytes_;
  const std::string access =
      arguments.text("access", "local_write|remote_write|remote_read|remote_atomic|mw_bind");
  Mr made(ibv_reg_mr(pd_.get(), address, bytes, static_cast<int>(access_bits(access))));
  if (!made) return result_of(errno);
  used_bytes_ += (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  if (const Value* filled = arguments.find("filled")) {
    const std::vector<std::byte> with = filled->make_bytes();
    std::copy_n(with.begin(), std::min<size_t>(with.size(), bytes), address);
  }
  Fields result = result_of(0);
  result.add("va", reinterpret_cast<uintptr_t>(address));
  result.add("rkey", made->rkey);
  result.add("lkey", made->lkey);
  mrs_[arguments.text("MR")] = std::move(made);
  return result;
}

Fields IbvProgram::dereg_mr(const Fields& arguments) {
  return result_of(ibv_dereg_mr(mrs_[arguments.text("MR")].release()));
}

Fields IbvProgram::alloc_mw(const Fields& arguments) {
  const auto type = arguments.text("TYPE") == "type1" ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
  Mw made(ibv_alloc_mw(pd_.get(), type));
  if (!made) return result_of(errno);
  Fields result = result_of(0);
  result.add("rkey", made->rkey);
  mws_[arguments.text("MW")] = std::move(made);
  return result;
}

ibv_mw* IbvProgram::window(const std::string& name) {
  const auto found = mws_.find(name);
  if (found == mws_.end()) throw Impossible("there is no window '" + name + "'");
  return found->second.get();
}

Fields IbvProgram::dealloc_mw(const Fields& arguments) {
  window(arguments.text("MW"));
  return result_of(ibv_dealloc_mw(mws_[arguments.text("MW")].release()));
}

Fields IbvProgram::memory(const Fields& arguments) {
  const size_t bytes = arguments.number("bytes", sizeof(uint64_t));
  const std::byte* const from = at(objects_.address(*arguments.find("PLACE")), bytes);
  return result_bytes({from, from + bytes});
}

Fields IbvProgram::set_memory(const Fields& arguments) {
  const std::vector<std::byte> bytes = arguments.find("BYTES")->make_bytes();
  std::ranges::copy(bytes, at(objects_.address(*arguments.find("PLACE")), bytes.size()));
  return result_of(0);
}

// ---- work ----

ibv_sge IbvProgram::sge(const Fields& arguments) const {
  ibv_sge sge{};
  const Value* place = arguments.find("at");
  if (place == nullptr) return sge;
  const Value* lkey = arguments.find("lkey");
  sge.addr = objects_.address(*place);
  sge.length = static_cast<uint32_t>(arguments.number("len", 0));
  if (lkey != nullptr) {
    sge.lkey = objects_.key(*lkey);
  } else if (place->kind == Value::Kind::name) {
    sge.lkey = objects_.numbers(place->text).lkey;
  }
  return sge;
}

Fields IbvProgram::post_recv(const Fields& arguments) {
  ibv_sge element = sge(arguments);
  ibv_recv_wr work{};
  work.wr_id = arguments.number("wr_id", 0);
  work.sg_list = &element;
  work.num_sge = arguments.has("at") ? 1 : 0;
  ibv_recv_wr* bad = nullptr;
  return result_of(ibv_post_recv(qp(arguments).qp.get(), &work, &bad));
}

Fields IbvProgram::post_srq_recv(const Fields& arguments) {
  ibv_sge element = sge(arguments);
  ibv_recv_wr work{};
  work.wr_id = arguments.number("wr_id", 0);
  work.sg_list = &element;
  work.num_sge = arguments.has("at") ? 1 : 0;
  ibv_recv_wr* bad = nullptr;
  return result_of(ibv_post_srq_recv(srq(arguments.text("SRQ")), &work, &bad));
}

int IbvProgram::fill_bind(const Fields& arguments, const ibv_sge& element, ibv_send_wr& work) {
  const auto region = mrs_.find(arguments.text("mr"));
  if (region == mrs_.end()) throw Impossible("there is no region '" + arguments.text("mr") + "'");
  const Value* key = arguments.find("rkey");
  work.num_sge = 0;
  work.bind_mw.mw = window(arguments.text("mw"));
  work.bind_mw.rkey = key == nullptr ? 0 : objects_.key(*key);
  work.bind_mw.bind_info.mr = region->second.get();
  work.bind_mw.bind_info.addr = element.addr;
  work.bind_mw.bind_info.length = element.length;
  work.bind_mw.bind_info.mw_access_flags =
      access_bits(arguments.text("access", "remote_write|remote_read"));
  return 0;
}

int IbvProgram::fill(const Fields& arguments, ibv_send_wr& work, const Qp& from) {
  const auto key = [&](const char* name) {
    const Value* value = arguments.find(name);
    return value == nullptr ? 0 : objects_.key(*value);
  };
  const Value* va = arguments.find("va");
  const uint64_t remote = va == nullptr ? 0 : objects_.address(*va);
  switch (work.opcode) {
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      work.invalidate_rkey = key("inv");
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      work.wr.atomic.remote_addr = remote;
      work.wr.atomic.rkey = key("rkey");
      work.wr.atomic.compare_add = arguments.number("add", arguments.number("compare", 0));
      work.wr.atomic.swap = arguments.number("swap", 0);
      break;
    case IBV_WR_DRIVER1:
      return EOPNOTSUPP;  // an atomic write has no place in struct ibv_send_wr
    default:
      work.wr.rdma.remote_addr = remote;
      work.wr.rdma.rkey = key("rkey");
      work.imm_data = network_order(static_cast<uint32_t>(arguments.number("imm", 0)));
      break;
  }
  work.qp_type.xrc.remote_srqn = key("srqn");
  if (from.type != "ud") return 0;
  ibv_ah_attr attr = path();
  if (!ah_) ah_.reset(ibv_create_ah(pd_.get(), &attr));
  if (!ah_) return errno;
  work.wr.ud.ah = ah_.get();
  work.wr.ud.remote_qpn = static_cast<uint32_t>(
      arguments.number("dest_qp", objects_.qp(arguments.text("QP")).wire_qpn.value));
  work.wr.ud.remote_qkey = static_cast<uint32_t>(arguments.number("qkey", kDefaultQkey));
  return 0;
}

Fields IbvProgram::post_send(const Fields& arguments) {
  Qp& from = qp(arguments);
  ibv_sge element = sge(arguments);
  ibv_send_wr work{};
  work.wr_id = arguments.number("wr_id", 0);
  work.opcode = work_opcode(arguments.text("OPCODE"));
  work.sg_list = &element;
  work.num_sge = arguments.has("at") ? 1 : 0;
  if (!arguments.has("unsignaled")) work.send_flags |= IBV_SEND_SIGNALED;
  if (arguments.has("solicited")) work.send_flags |= IBV_SEND_SOLICITED;
  if (arguments.has("fence")) work.send_flags |= IBV_SEND_FENCE;
  if (arguments.has("inline")) work.send_flags |= IBV_SEND_INLINE;
  const int error = work.opcode == IBV_WR_BIND_MW ? fill_bind(arguments, element, work)
                                                  : fill(arguments, work, from);
  if (error != 0) return result_of(error);
  ibv_send_wr* bad = nullptr;
  return result_of(ibv_post_send(from.qp.get(), &work, &bad));
}

// ---- what has come ----

std::string IbvProgram::name_of(const ibv_qp* wanted) const {
  for (const auto& [name, made] : qps_)
    if (made.qp.get() == wanted) return name;
  return {};
}

std::string IbvProgram::name_of(const ibv_srq* wanted) const {
  for (const auto& [name, made] : srqs_)
    if (made.get() == wanted) return name;
  return {};
}

Fields IbvProgram::poll_cq(const Fields& arguments) {
  ibv_wc wc{};
  if (ibv_poll_cq(cq(arguments).cq.get(), 1, &wc) <= 0) return nothing();
  const std::string from = objects_.name_of(wire::Qpn{wc.qp_num});
  const auto receiver = qps_.find(from);
  // A GRH is told of for datagrams alone (ibv_poll_cq(3)); some devices set the flag for others,
  // too.
  const bool is_datagram = receiver != qps_.end() && receiver->second.type == "ud";
  const bool invalidated = (wc.wc_flags & IBV_WC_WITH_INV) != 0;
  return result_completion(
      {.status = wc.status,
       .opcode = wc.opcode,
       .wr_id = wc.wr_id,
       .qp = from,
       .byte_length = wc.byte_len,
       .has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0,
       .has_invalidated = invalidated,
       .has_grh = is_datagram && (wc.wc_flags & IBV_WC_GRH) != 0,
       .immediate = invalidated ? wc.invalidated_rkey : network_order(wc.imm_data),
       .source_qp = wc.src_qp});
}

Fields IbvProgram::req_notify_cq(const Fields& arguments) {
  return result_of(
      ibv_req_notify_cq(cq(arguments).cq.get(), arguments.has("solicited_only") ? 1 : 0));
}

Fields IbvProgram::get_cq_event(const Fields& arguments) {
  ibv_cq* woken = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(cq(arguments).channel.get(), &woken, &context) != 0) return nothing();
  ibv_ack_cq_events(woken, 1);
  return result_word("event");
}

Fields IbvProgram::get_async_event(const Fields&) {
  ibv_async_event event{};
  if (ibv_get_async_event(context_.get(), &event) != 0) return nothing();
  ibv_ack_async_event(&event);
  const bool about_srq = event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
  const bool about_qp = event.event_type != IBV_EVENT_CQ_ERR && !about_srq;
  const std::string name = about_srq  ? name_of(event.element.srq)
                           : about_qp ? name_of(event.element.qp)
                                      : "";
  return result_event(event.event_type, about_srq ? "srq" : "qp", name);
}

}  // namespace rocemu::script
