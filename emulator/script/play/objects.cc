#include "emulator/script/play/objects.h"

namespace rocemu::script {

namespace {

wire::Transport transport_of(const std::string& type) {
  if (type == "uc") return wire::Transport::uc;
  if (type == "ud") return wire::Transport::ud;
  return type == "rc" ? wire::Transport::rc : wire::Transport::xrc;
}

}  // namespace

void Objects::learn(const Call& call, const Fields& result) {
  if (result.text("result") != "ok") return;
  const auto number = [&](const char* key) { return result.number(key, 0); };
  if (call.verb == "create_qp") {
    last_qp_ = call.arguments.text("QP");
    qps_[last_qp_] = {transport_of(call.arguments.text("TYPE")),
                      wire::Qpn{static_cast<uint32_t>(number("qpn"))}, wire::Qpn{next_wire_qpn_++},
                      wire::Psn(kDefaultRqPsn), wire::Psn(kDefaultSqPsn)};
  } else if (call.verb == "modify_qp" || call.verb == "connect") {
    ScriptQp& qp = qps_[call.arguments.text("QP")];
    const auto psn = [&](const char* key, wire::Psn now) {
      return wire::Psn(static_cast<uint32_t>(call.arguments.number(key, now.value())));
    };
    qp.rq_psn = psn("rq_psn", qp.rq_psn);
    qp.sq_psn = psn("sq_psn", qp.sq_psn);
  } else if (call.verb == "destroy_qp") {
    // Frames to it, and from it, can still be named.
  } else if (call.verb == "reg_mr" || call.verb == "alloc_mw" || call.verb == "create_srq") {
    const Field& name = call.arguments.list.front();
    numbers_[name.value.text] = {number("va"), static_cast<uint32_t>(number("rkey")),
                                 static_cast<uint32_t>(number("lkey"))};
  }
}

const ScriptQp& Objects::qp(const std::string& name) const {
  const auto found = qps_.find(name);
  if (found == qps_.end()) throw Impossible("there is no QP '" + name + "'");
  return found->second;
}

const Numbers& Objects::numbers(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) throw Impossible("there is no region, window or SRQ '" + name + "'");
  return found->second;
}

const std::string& Objects::last_qp() const {
  if (last_qp_.empty()) throw Impossible("there is no QP that the frame could be of");
  return last_qp_;
}

const ScriptQp* Objects::by_wire_qpn(wire::Qpn qpn) const {
  for (const auto& [name, qp] : qps_)
    if (qp.wire_qpn == qpn) return &qp;
  return nullptr;
}

std::string Objects::name_of(wire::Qpn qpn) const {
  for (const auto& [name, qp] : qps_)
    if (qp.qpn == qpn) return name;
  return {};
}

uint64_t Objects::address(const Value& value) const {
  return value.number + (value.kind == Value::Kind::name ? numbers(value.text).va : 0);
}

uint32_t Objects::key(const Value& value) const {
  return static_cast<uint32_t>(value.number +
                               (value.kind == Value::Kind::name ? numbers(value.text).rkey : 0));
}

}  // namespace rocemu::script
