#include "emulator/script/language/vocabulary.h"

#include <algorithm>
#include <cstdio>

#include "emulator/wire/headers.h"

namespace rocemu::script {

namespace {

using wire::Operation;

// The attributes of ibv_modify_qp(3) that a script may name.
std::vector<Key> attributes() {
  return {{"access", Takes::flags, kAccess},
          {"qkey"},
          {"mtu", Takes::word, "256 512 1024 2048 4096"},
          {"rq_psn"},
          {"sq_psn"},
          {"max_rd_atomic"},
          {"max_dest_rd_atomic"},
          {"min_rnr_timer"},
          {"timeout"},
          {"retry_cnt"},
          {"rnr_retry"},
          {"sqd_event", Takes::nothing}};
}

std::vector<Key> completion_keys() {
  return {{"wr_id"},  {"byte_len"},           {"imm"}, {"inv", Takes::key}, {"qp", Takes::object},
          {"src_qp"}, {"grh", Takes::nothing}};
}

constexpr Key kQp{"QP", Takes::object};

const std::vector<Verb> kVerbs = {
    {"create_cq", {{"CQ", Takes::new_object}}, 1, {{"depth"}}, {}},
    {"create_qp",
     {{"QP", Takes::new_object}, {"TYPE", Takes::word, kQpTypes}},
     2,
     {{"srq", Takes::object},
      {"send_cq", Takes::object},
      {"recv_cq", Takes::object},
      {"send_wr"},
      {"recv_wr"},
      {"sq_sig_all", Takes::nothing}},
     {}},
    {"modify_qp", {kQp, {"STATE", Takes::word, kQpStates}}, 1, attributes(), {}},
    {"connect", {kQp}, 1, attributes(), {}},
    {"query_qp",
     {kQp},
     1,
     {},
     {{"STATE", Takes::word, kQpStates}},
     {{"sq_draining"}, {"timeout"}, {"retry_cnt"}, {"rnr_retry"}, {"min_rnr_timer"}}},
    {"destroy_qp", {kQp}, 1, {}, {}},
    {"reg_mr",
     {{"MR", Takes::new_object}},
     1,
     {{"bytes"}, {"access", Takes::flags, kAccess}, {"filled", Takes::bytes}},
     {}},
    {"dereg_mr", {{"MR", Takes::object}}, 1, {}, {}},
    {"alloc_mw", {{"MW", Takes::new_object}, {"TYPE", Takes::word, "type1 type2"}}, 2, {}, {}},
    {"dealloc_mw", {{"MW", Takes::object}}, 1, {}, {}},
    {"create_srq", {{"SRQ", Takes::new_object}}, 1, {{"wr"}, {"xrc", Takes::nothing}}, {}},
    {"modify_srq", {{"SRQ", Takes::object}}, 1, {{"limit"}}, {}},
    {"post_srq_recv", {{"SRQ", Takes::object}}, 1, {{"wr_id"}, {"at", Takes::place}, {"len"}}, {}},
    {"post_recv", {kQp}, 1, {{"wr_id"}, {"at", Takes::place}, {"len"}, {"lkey", Takes::key}}, {}},
    {"post_send",
     {kQp, {"OPCODE", Takes::word, kSendOpcodes}},
     2,
     {{"wr_id"},
      {"at", Takes::place},
      {"len"},
      {"lkey", Takes::key},
      {"va", Takes::place},
      {"rkey", Takes::key},
      {"imm"},
      {"inv", Takes::key},
      {"compare"},
      {"swap"},
      {"add"},
      {"qkey"},
      {"dest_qp"},
      {"srqn", Takes::key},
      {"mw", Takes::object},
      {"mr", Takes::object},
      {"access", Takes::flags, kAccess},
      {"inline", Takes::nothing},
      {"solicited", Takes::nothing},
      {"fence", Takes::nothing},
      {"unsignaled", Takes::nothing}},
     {}},
    {"poll_cq",
     {{"CQ", Takes::object}},
     0,
     {},
     {{"STATUS", Takes::word, kStatuses}, {"OPCODE", Takes::word, kWcOpcodes}},
     completion_keys()},
    {"req_notify_cq", {{"CQ", Takes::object}}, 0, {{"solicited_only", Takes::nothing}}, {}},
    {"get_cq_event", {{"CQ", Takes::object}}, 0, {}, {{"EVENT", Takes::word, "event nothing"}}},
    {"get_async_event",
     {},
     0,
     {},
     {{"EVENT", Takes::word, kEvents}},
     {{"qp", Takes::object}, {"srq", Takes::object}}},
    {"memory", {{"PLACE", Takes::place}}, 1, {{"bytes"}}, {{"BYTES", Takes::bytes}}},
    {"set_memory", {{"PLACE", Takes::place}, {"BYTES", Takes::bytes}}, 2, {}, {}},
};

constexpr uint8_t kAnyRnr = wire::syndrome::kRnr;  // without its timer

using namespace wire::syndrome;

const std::vector<Opcode> kOpcodes = {
    {"SEND_FIRST", Operation::send_first, {}},
    {"SEND_MIDDLE", Operation::send_middle, {}},
    {"SEND_LAST", Operation::send_last, {}},
    {"SEND_LAST_IMM", Operation::send_last_imm, {}},
    {"SEND_LAST_INV", Operation::send_last_invalidate, {}},
    {"SEND_ONLY", Operation::send_only, {}},
    {"SEND_ONLY_IMM", Operation::send_only_imm, {}},
    {"SEND_ONLY_INV", Operation::send_only_invalidate, {}},
    {"WRITE_FIRST", Operation::write_first, {}},
    {"WRITE_MIDDLE", Operation::write_middle, {}},
    {"WRITE_LAST", Operation::write_last, {}},
    {"WRITE_LAST_IMM", Operation::write_last_imm, {}},
    {"WRITE_ONLY", Operation::write_only, {}},
    {"WRITE_ONLY_IMM", Operation::write_only_imm, {}},
    {"READ_REQUEST", Operation::read_request, {}},
    {"READ_RESPONSE_FIRST", Operation::read_response_first, {}},
    {"READ_RESPONSE_MIDDLE", Operation::read_response_middle, {}},
    {"READ_RESPONSE_LAST", Operation::read_response_last, {}},
    {"READ_RESPONSE_ONLY", Operation::read_response_only, {}},
    {"CAS", Operation::compare_swap, {}},
    {"FADD", Operation::fetch_add, {}},
    {"ATOMIC_WRITE", Operation::atomic_write, {}},
    {"FLUSH", Operation::flush, {}},
    {"ATOMIC_ACK", Operation::atomic_acknowledge, {}},
    {"ACK", Operation::acknowledge, kAck},
    {"RNR_NAK", Operation::acknowledge, kAnyRnr},
    {"NAK_SEQUENCE", Operation::acknowledge, kNakSequence},
    {"NAK_INVALID_REQUEST", Operation::acknowledge, kNakInvalidRequest},
    {"NAK_REMOTE_ACCESS", Operation::acknowledge, kNakRemoteAccess},
    {"NAK_REMOTE_OPERATION", Operation::acknowledge, kNakRemoteOperation},
    {"NAK_INVALID_RD_REQUEST", Operation::acknowledge, kNakInvalidRdRequest},
    {"ACKNOWLEDGE", Operation::acknowledge, {}},  // any other syndrome
    {"CNP", {}, {}},
    {"OPCODE", {}, {}},  // any, by its number
};

constexpr Key kCommon[] = {
    {"qp", Takes::object},
    {"transport", Takes::word, "rc uc ud xrc"},
    {"dqpn"},
    {"psn", Takes::psn},
    {"ackreq", Takes::number},
    {"se", Takes::number},
    {"mig"},
    {"pad"},
    {"tver"},
    {"pkey"},
    {"fecn"},
    {"becn"},
    {"resv6"},
    {"resv7"},
    {"tclass"},
    {"src"},
    {"icrc", Takes::word, "good bad"},
    {"cut"},
    {"payload", Takes::bytes},
};

template <class Table, class Name>
std::string joined(const Table& table, Name name) {
  std::string text;
  for (const auto& row : table) text += (text.empty() ? "" : " ") + std::string(name(row));
  return text;
}

}  // namespace

const Verb* find_verb(std::string_view name) {
  const auto found = std::ranges::find(kVerbs, name, &Verb::name);
  return found == kVerbs.end() ? nullptr : &*found;
}

bool shows_state(std::string_view verb) { return verb == "memory" || verb == "query_qp"; }
bool takes_off(std::string_view verb) {
  return verb == "poll_cq" || verb == "get_async_event" || verb == "get_cq_event";
}

std::string all_verbs() {
  return joined(kVerbs, [](const Verb& verb) { return verb.name; });
}

const Opcode* find_opcode(std::string_view name) {
  const auto found = std::ranges::find(kOpcodes, name, &Opcode::name);
  return found == kOpcodes.end() ? nullptr : &*found;
}

std::string all_opcodes() {
  return joined(kOpcodes, [](const Opcode& opcode) { return opcode.name; }) + " nothing";
}

std::string opcode_name(uint8_t bth_opcode, uint8_t syndrome) {
  if (bth_opcode == wire::kCnpOpcode) return "CNP";
  const auto operation = static_cast<Operation>(bth_opcode & 0x1f);
  const uint8_t kind = wire::syndrome::is_ack(syndrome)   ? wire::syndrome::kAck
                       : wire::syndrome::is_rnr(syndrome) ? kAnyRnr
                                                          : syndrome;
  for (const Opcode& opcode : kOpcodes)
    if (opcode.operation == operation && opcode.syndrome.value_or(kind) == kind)
      return std::string(opcode.name);
  char text[16];
  std::snprintf(text, sizeof text, "OPCODE 0x%02x", bth_opcode);
  return text;
}

std::span<const Key> common_fields() { return kCommon; }

std::vector<Key> header_fields(const Opcode& opcode, const wire::OpcodeTraits& traits) {
  std::vector<Key> keys;
  const auto add = [&](bool has, std::initializer_list<Key> more) {
    if (!has) return;
    for (const Key& key : more) keys.push_back(key);
  };
  add(traits.xrceth, {{"srqn", Takes::key}});
  add(traits.deth, {{"qkey"}, {"sqpn"}});
  add(traits.feth, {{"placement"}, {"selectivity"}});
  add(traits.reth, {{"va", Takes::place}, {"rkey", Takes::key}, {"len"}});
  add(traits.atomic_eth, {{"va", Takes::place}, {"rkey", Takes::key}});
  add(opcode.operation == Operation::compare_swap, {{"compare"}, {"swap"}});
  add(opcode.operation == Operation::fetch_add, {{"add"}});
  add(traits.aeth, {{"msn"}});
  add(traits.aeth && !opcode.syndrome, {{"syndrome"}});
  add(opcode.syndrome == wire::syndrome::kAck, {{"credits"}});
  add(opcode.syndrome == kAnyRnr, {{"timer"}});
  add(traits.atomic_ack_eth, {{"original"}});
  add(traits.imm, {{"imm"}});
  add(traits.ieth, {{"inv", Takes::key}});
  add(!opcode.operation, {{"code"}});
  return keys;
}

bool is_one_of(std::string_view words, std::string_view word) {
  if (word.empty()) return false;
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

}  // namespace rocemu::script
