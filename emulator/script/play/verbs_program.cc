#include "emulator/script/play/verbs_program.h"

#include <algorithm>
#include <cerrno>

#include "emulator/script/language/vocabulary.h"

namespace rocemu::script {

namespace {

uint32_t number(const Fields& arguments, const char* key, uint64_t otherwise = 0) {
  return static_cast<uint32_t>(arguments.number(key, otherwise));
}

}  // namespace

const std::map<std::string, VerbsProgram::Handler>& VerbsProgram::handlers() {
  static const std::map<std::string, Handler> all = {
      {"create_cq", &VerbsProgram::create_cq},
      {"create_qp", &VerbsProgram::create_qp},
      {"modify_qp", &VerbsProgram::modify_qp},
      {"connect", &VerbsProgram::connect},
      {"query_qp", &VerbsProgram::query_qp},
      {"destroy_qp", &VerbsProgram::destroy_qp},
      {"reg_mr", &VerbsProgram::reg_mr},
      {"dereg_mr", &VerbsProgram::dereg_mr},
      {"alloc_mw", &VerbsProgram::alloc_mw},
      {"dealloc_mw", &VerbsProgram::dealloc_mw},
      {"create_srq", &VerbsProgram::create_srq},
      {"modify_srq", &VerbsProgram::modify_srq},
      {"post_srq_recv", &VerbsProgram::post_srq_recv},
      {"post_recv", &VerbsProgram::post_recv},
      {"post_send", &VerbsProgram::post_send},
      {"poll_cq", &VerbsProgram::poll_cq},
      {"req_notify_cq", &VerbsProgram::req_notify_cq},
      {"get_cq_event", &VerbsProgram::get_cq_event},
      {"get_async_event", &VerbsProgram::get_async_event},
      {"memory", &VerbsProgram::read_memory},
      {"set_memory", &VerbsProgram::set_memory}};
  return all;
}

Fields VerbsProgram::call(const Call& call) {
  const Fields result = (this->*handlers().at(call.verb))(call.arguments);
  objects_.learn(call, result);
  return result;
}

// ---- queues and QPs ----

const std::string& VerbsProgram::type_of(const std::string& qp) const {
  return named(types_, qp, "QP");
}

Fields VerbsProgram::create_cq(const Fields& arguments) {
  return result_of(make_cq(arguments.text("CQ"), number(arguments, "depth", kDefaultDepth)));
}

Fields VerbsProgram::create_qp(const Fields& arguments) {
  const QpRequest request{.name = arguments.text("QP"),
                          .type = arguments.text("TYPE"),
                          .send_cq = arguments.text("send_cq", kDefaultCq),
                          .receive_cq = arguments.text("recv_cq", kDefaultCq),
                          .srq = arguments.text("srq"),
                          .send_wr = number(arguments, "send_wr", kDefaultDepth),
                          .receive_wr = number(arguments, "recv_wr", kDefaultDepth),
                          .signals_all = arguments.has("sq_sig_all")};
  uint32_t qpn = 0;
  if (const int error = make_qp(request, qpn)) return result_of(error);
  types_[request.name] = request.type;
  Fields result = result_of(0);
  result.add("qpn", qpn);
  return result;
}

int VerbsProgram::change(const Fields& arguments, const std::string& to) {
  const std::string qp = arguments.text("QP");
  const std::string& type = type_of(qp);
  const std::string from = to.empty() ? "" : std::string(word_at(kQpStates, look_at(qp).state));
  return change_qp(qp, settings_of(arguments, type, to, from, objects_.qp(qp).wire_qpn));
}

Fields VerbsProgram::modify_qp(const Fields& arguments) {
  return result_of(change(arguments, arguments.text("STATE")));
}

Fields VerbsProgram::connect(const Fields& arguments) {
  for (const char* to : {"init", "rtr", "rts"})
    if (const int error = change(arguments, to)) return result_of(error);
  return result_of(0);
}

Fields VerbsProgram::query_qp(const Fields& arguments) {
  const QpLook seen = look_at(arguments.text("QP"));
  Fields result = result_word(std::string(word_at(kQpStates, seen.state)));
  result.add("sq_draining", seen.draining);
  result.add("timeout", seen.timeout);
  result.add("retry_cnt", seen.retry_cnt);
  result.add("rnr_retry", seen.rnr_retry);
  result.add("min_rnr_timer", seen.min_rnr_timer);
  return result;
}

Fields VerbsProgram::destroy_qp(const Fields& arguments) {
  const std::string qp = arguments.text("QP");
  const int error = drop_qp(qp);
  if (error == 0) types_.erase(qp);
  return result_of(error);
}

Fields VerbsProgram::create_srq(const Fields& arguments) {
  const SrqRequest request{.name = arguments.text("SRQ"),
                           .xrc = arguments.has("xrc"),
                           .max_wr = number(arguments, "wr", kDefaultDepth)};
  uint32_t srqn = 0;
  if (const int error = make_srq(request, srqn)) return result_of(error);
  Fields result = result_of(0);
  if (request.xrc) result.add("rkey", srqn);
  return result;
}

Fields VerbsProgram::modify_srq(const Fields& arguments) {
  return result_of(limit_srq(arguments.text("SRQ"), number(arguments, "limit")));
}

// ---- memory ----

Fields VerbsProgram::reg_mr(const Fields& arguments) {
  const uint64_t bytes = arguments.number("bytes", ProgramMemory::kPageBytes);
  const RegionRequest request{
      .name = arguments.text("MR"),
      .address = memory_.allocate(bytes),
      .bytes = bytes,
      .access = access_bits(
          arguments.text("access", "local_write|remote_write|remote_read|remote_atomic|mw_bind"))};
  RegionKeys keys;
  if (const int error = make_region(request, keys)) return result_of(error);
  if (const Value* filled = arguments.find("filled")) {
    const std::vector<std::byte> with = filled->make_bytes();
    std::copy_n(with.begin(), std::min<size_t>(with.size(), bytes),
                memory_.at(request.address, bytes));
  }
  Fields result = result_of(0);
  result.add("va", request.address);
  result.add("rkey", keys.rkey);
  result.add("lkey", keys.lkey);
  return result;
}

Fields VerbsProgram::dereg_mr(const Fields& arguments) {
  return result_of(drop_region(arguments.text("MR")));
}

Fields VerbsProgram::alloc_mw(const Fields& arguments) {
  uint32_t rkey = 0;
  if (const int error = make_window(arguments.text("MW"), arguments.text("TYPE") == "type1", rkey))
    return result_of(error);
  Fields result = result_of(0);
  result.add("rkey", rkey);
  return result;
}

Fields VerbsProgram::dealloc_mw(const Fields& arguments) {
  return result_of(drop_window(arguments.text("MW")));
}

Fields VerbsProgram::read_memory(const Fields& arguments) {
  const size_t bytes = arguments.number("bytes", sizeof(uint64_t));
  const std::byte* const from = memory_.at(objects_.address(*arguments.find("PLACE")), bytes);
  return result_bytes({from, from + bytes});
}

Fields VerbsProgram::set_memory(const Fields& arguments) {
  const std::vector<std::byte> bytes = arguments.find("BYTES")->make_bytes();
  std::ranges::copy(bytes, memory_.at(objects_.address(*arguments.find("PLACE")), bytes.size()));
  return result_of(0);
}

// ---- work ----

std::optional<Element> VerbsProgram::element(const Fields& arguments) const {
  const Value* const place = arguments.find("at");
  if (place == nullptr) return std::nullopt;
  const Value* const lkey = arguments.find("lkey");
  return Element{.address = objects_.address(*place),
                 .bytes = number(arguments, "len"),
                 .lkey = lkey != nullptr                    ? objects_.key(*lkey)
                         : place->kind == Value::Kind::name ? objects_.numbers(place->text).lkey
                                                            : 0};
}

uint32_t VerbsProgram::key(const Fields& arguments, const char* name) const {
  const Value* const value = arguments.find(name);
  return value == nullptr ? 0 : objects_.key(*value);
}

ReceiveRequest VerbsProgram::receive_request(const Fields& arguments) const {
  return {arguments.number("wr_id", 0), element(arguments)};
}

Fields VerbsProgram::post_recv(const Fields& arguments) {
  return result_of(receive(arguments.text("QP"), receive_request(arguments)));
}

Fields VerbsProgram::post_srq_recv(const Fields& arguments) {
  return result_of(receive_shared(arguments.text("SRQ"), receive_request(arguments)));
}

SendRequest VerbsProgram::send_request(const Fields& arguments) const {
  SendRequest request;
  request.wr_id = arguments.number("wr_id", 0);
  request.opcode = index_of(kSendOpcodes, arguments.text("OPCODE"));
  request.signaled = !arguments.has("unsignaled");
  request.solicited = arguments.has("solicited");
  request.fence = arguments.has("fence");
  request.inlined = arguments.has("inline");
  request.element = element(arguments);
  if (const Value* va = arguments.find("va")) request.remote_address = objects_.address(*va);
  request.key = key(arguments, arguments.has("inv") ? "inv" : "rkey");
  request.immediate = network_order(number(arguments, "imm"));
  request.compare_add = arguments.number(arguments.has("add") ? "add" : "compare", 0);
  request.swap = arguments.number("swap", 0);
  request.srqn = key(arguments, "srqn");
  request.to_qpn = number(arguments, "dest_qp", objects_.qp(arguments.text("QP")).wire_qpn.value);
  request.to_qkey = number(arguments, "qkey", kDefaultQkey);
  if (arguments.text("OPCODE") != "bind_mw") return request;
  if (!request.element) throw Impossible("a window is bound to a place, 'at'");
  request.binding = {arguments.text("mw"), arguments.text("mr"),
                     access_bits(arguments.text("access", "remote_write|remote_read"))};
  return request;
}

Fields VerbsProgram::post_send(const Fields& arguments) {
  return result_of(send(arguments.text("QP"), send_request(arguments)));
}

// ---- what has come ----

Fields VerbsProgram::poll_cq(const Fields& arguments) {
  const std::optional<CompletionText> completion = poll(arguments.text("CQ", kDefaultCq));
  return completion ? result_completion(*completion) : nothing();
}

Fields VerbsProgram::req_notify_cq(const Fields& arguments) {
  return result_of(arm(arguments.text("CQ", kDefaultCq), arguments.has("solicited_only")));
}

Fields VerbsProgram::get_cq_event(const Fields& arguments) {
  return take_cq_event(arguments.text("CQ", kDefaultCq)) ? result_word("event") : nothing();
}

Fields VerbsProgram::get_async_event(const Fields&) {
  const std::optional<ProgramEvent> event = take_event();
  return event ? result_event(event->type, event->object, event->name) : nothing();
}

}  // namespace rocemu::script
