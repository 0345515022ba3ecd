#include "emulator/script/play/frames.h"

#include <algorithm>

#include "base/verbs/numbers.h"
#include "emulator/script/language/parser.h"
#include "emulator/script/language/vocabulary.h"
#include "emulator/script/play/program.h"
#include "emulator/wire/build.h"
#include "emulator/wire/icrc.h"

namespace rocemu::script {

namespace {

using wire::MessageKind;
using wire::OpcodeTraits;
using wire::Psn;

constexpr size_t kMaxHeaderBytes = 128;
using verbs::placement::kGlobal;

constexpr uint64_t kNoCredits = 0x1f;

uint8_t pad_of(size_t payload_bytes) { return static_cast<uint8_t>(-payload_bytes & 3); }

wire::Transport transport_of(const Fields& fields, const ScriptQp& qp) {
  const std::string name = fields.text("transport");
  if (name.empty()) return qp.transport;
  return name == "uc"    ? wire::Transport::uc
         : name == "ud"  ? wire::Transport::ud
         : name == "xrc" ? wire::Transport::xrc
                         : wire::Transport::rc;
}

uint8_t opcode_of(const Frame& frame, const ScriptQp& qp) {
  if (frame.opcode == "CNP") return wire::kCnpOpcode;
  const Opcode& opcode = *find_opcode(frame.opcode);
  if (!opcode.operation) return static_cast<uint8_t>(frame.fields.number("code", 0));
  return wire::bth_opcode(transport_of(frame.fields, qp), *opcode.operation);
}

// The PSNs of answers are those of the other side's requests.
Psn base_of(bool from_nic, const OpcodeTraits& traits, const ScriptQp& qp) {
  const bool is_response = traits.kind == MessageKind::response;
  return from_nic == is_response ? qp.rq_psn : qp.sq_psn;
}

// Fills in what the script names.
class Maker {
 public:
  Maker(const Frame& frame, const Objects& objects)
      : fields_(frame.fields),
        objects_(objects),
        opcode_(*find_opcode(frame.opcode)),
        qp_(objects.qp(frame.fields.text("qp", objects.last_qp()))),
        code_(opcode_of(frame, qp_)) {}

  wire::Bth bth(size_t payload_bytes) const {
    wire::Bth bth;
    bth.opcode = code_;
    bth.solicited = number("se", 0) != 0;
    bth.mig_req = number("mig", 1) != 0;
    bth.pad_bytes = static_cast<uint8_t>(number("pad", pad_of(payload_bytes)));
    bth.version = static_cast<uint8_t>(number("tver", 0));
    bth.pkey = static_cast<uint16_t>(number("pkey", wire::kDefaultPkey));
    bth.fecn = number("fecn", 0) != 0;
    bth.becn = number("becn", code_ == wire::kCnpOpcode ? 1 : 0) != 0;
    bth.reserved6 = static_cast<uint8_t>(number("resv6", 0));
    bth.destination_qp = wire::Qpn{static_cast<uint32_t>(number("dqpn", qp_.qpn.value))};
    bth.ack_request = number("ackreq", 0) != 0;
    bth.reserved7 = static_cast<uint8_t>(number("resv7", 0));
    bth.psn = psn();
    return bth;
  }

  wire::ExtendedHeaders extended() const {
    wire::ExtendedHeaders ext;
    ext.feth = {.placement = static_cast<uint8_t>(number("placement", kGlobal)),
                .selectivity = static_cast<uint8_t>(number("selectivity", 0))};
    ext.reth = {place("va"), wire::RKey{key("rkey")}, static_cast<uint32_t>(number("len", 0))};
    ext.atomic = {place("va"), wire::RKey{key("rkey")}, number("swap", number("add", 0)),
                  number("compare", 0)};
    ext.aeth = {syndrome(), static_cast<uint32_t>(number("msn", 0))};
    ext.atomic_original = number("original", 0);
    ext.deth = {static_cast<uint32_t>(number("qkey", kDefaultQkey)),
                wire::Qpn{static_cast<uint32_t>(number("sqpn", qp_.wire_qpn.value))}};
    ext.xrc_srq = wire::Qpn{key("srqn")};
    ext.immediate = network_order(static_cast<uint32_t>(number("imm", 0)));
    ext.invalidate = wire::RKey{key("inv")};
    return ext;
  }

  std::vector<std::byte> payload() const {
    const Value* value = fields_.find("payload");
    if (value != nullptr) return value->make_bytes();
    return std::vector<std::byte>(code_ == wire::kCnpOpcode ? wire::kCnpReservedBytes : 0);
  }

  uint64_t number(const char* key, uint64_t otherwise) const {
    return fields_.number(key, otherwise);
  }

 private:
  uint8_t syndrome() const {
    const uint8_t kind = opcode_.syndrome.value_or(wire::syndrome::kAck);
    if (wire::syndrome::is_rnr(kind)) return static_cast<uint8_t>(kind | number("timer", 0));
    if (wire::syndrome::is_ack(kind) && fields_.has("credits"))
      return static_cast<uint8_t>(number("credits", 0));
    return static_cast<uint8_t>(number("syndrome", kind));
  }
  Psn psn() const {
    const Value* value = fields_.find("psn");
    if (value == nullptr) return Psn{};
    const auto given = static_cast<uint32_t>(value->number);
    if (value->kind != Value::Kind::relative) return Psn(given);
    return base_of(false, wire::traits_of(code_), qp_) + given;
  }
  uint64_t place(const char* name) const {
    const Value* value = fields_.find(name);
    return value == nullptr ? 0 : objects_.address(*value);
  }
  uint32_t key(const char* name) const {
    const Value* value = fields_.find(name);
    return value == nullptr ? 0 : objects_.key(*value);
  }

  const Fields& fields_;
  const Objects& objects_;
  const Opcode& opcode_;
  const ScriptQp& qp_;
  uint8_t code_;
};

// Collects what does not fit.
class Comparison {
 public:
  Comparison(const Fields& expected, const Objects& objects)
      : expected_(expected), objects_(objects) {}

  // `otherwise` is expected where the script does not name the field; empty: anything.
  void number(const char* key, uint64_t came, std::optional<uint64_t> otherwise) {
    const Value* value = expected_.find(key);
    if (value == nullptr) {
      if (!expected_.open && otherwise && came != *otherwise) note(key, *otherwise, came);
    } else if (value->kind == Value::Kind::range) {
      if (came < value->number || came > value->last) text(key, to_text(*value), to_text_of(came));
    } else if (value->kind != Value::Kind::any) {
      const uint64_t wanted = value->kind == Value::Kind::none ? 1 : value->number;
      if (came != wanted) note(key, wanted, came);
    }
  }
  void place(const char* key, uint64_t came) {
    const Value* value = expected_.find(key);
    if (value != nullptr && value->kind == Value::Kind::name)
      return compare(key, objects_.address(*value), came);
    number(key, came, {});
  }
  void key(const char* key, uint32_t came) {
    const Value* value = expected_.find(key);
    if (value != nullptr && value->kind == Value::Kind::name)
      return compare(key, objects_.key(*value), came);
    number(key, came, {});
  }
  void psn(Psn base, Psn came) {
    const Value* value = expected_.find("psn");
    if (value == nullptr || value->kind != Value::Kind::relative)
      return number("psn", came.value(), {});
    compare("psn", (base + static_cast<uint32_t>(value->number)).value(), came.value());
  }
  void payload(std::span<const std::byte> came) {
    const Value* value = expected_.find("payload");
    if (value == nullptr || value->kind == Value::Kind::any) return;
    const std::vector<std::byte> wanted = value->make_bytes();
    const bool same = value->kind == Value::Kind::length ? wanted.size() == came.size()
                                                         : std::ranges::equal(wanted, came);
    if (!same) text("payload", to_text(*value), std::to_string(came.size()) + " bytes");
  }
  void compare(const char* key, uint64_t wanted, uint64_t came) {
    if (wanted != came) note(key, wanted, came);
  }
  void text(const std::string& key, const std::string& wanted, const std::string& came) {
    text_ += (text_.empty() ? "" : "; ") + key + " is " + came + ", expected is " + wanted;
  }

  const std::string& found() const { return text_; }

 private:
  static std::string to_text_of(uint64_t number) {
    return to_text(Value{.kind = Value::Kind::number, .number = number, .text = {}, .bytes = {}});
  }
  void note(const char* key, uint64_t wanted, uint64_t came) {
    text(key, to_text_of(wanted), to_text_of(came));
  }

  const Fields& expected_;
  const Objects& objects_;
  std::string text_;
};

void compare_headers(Comparison& compare, const Opcode& opcode, const wire::Packet& packet,
                     const ScriptQp& qp) {
  const OpcodeTraits& traits = packet.traits();
  const wire::ExtendedHeaders& ext = packet.ext;
  if (traits.feth) {
    compare.number("placement", ext.feth.placement, {});
    compare.number("selectivity", ext.feth.selectivity, {});
  }
  if (traits.reth) {
    compare.place("va", ext.reth.virtual_address);
    compare.key("rkey", ext.reth.rkey.value);
    compare.number("len", ext.reth.length_bytes, {});
  }
  if (traits.atomic_eth) {
    compare.place("va", ext.atomic.virtual_address);
    compare.key("rkey", ext.atomic.rkey.value);
    compare.number("swap", ext.atomic.swap_or_add, {});
    compare.number("add", ext.atomic.swap_or_add, {});
    compare.number("compare", ext.atomic.compare, {});
  }
  if (traits.aeth) {
    compare.number("msn", ext.aeth.msn, {});
    compare.number("syndrome", ext.aeth.syndrome, {});
    compare.number("credits", ext.aeth.syndrome, {});
    compare.number("timer", ext.aeth.syndrome & 0x1fu, {});
    if (opcode.operation != wire::Operation::acknowledge)
      compare.compare("the kind of syndrome", ext.aeth.syndrome & 0xe0u, 0);
  }
  if (traits.deth) {
    compare.number("qkey", ext.deth.qkey, {});
    compare.number("sqpn", ext.deth.source_qp.value, qp.qpn.value);
  }
  if (traits.atomic_ack_eth) compare.number("original", ext.atomic_original, {});
  if (traits.xrceth) compare.key("srqn", ext.xrc_srq.value);
  if (traits.imm) compare.number("imm", network_order(ext.immediate), {});
  if (traits.ieth) compare.key("inv", ext.invalidate.value);
}

std::string text_of(const wire::Packet& packet, const ScriptQp* qp) {
  const OpcodeTraits& traits = packet.traits();
  const wire::ExtendedHeaders& ext = packet.ext;
  Fields fields;
  const wire::Bth& bth = packet.bth;
  const Psn base = qp == nullptr ? Psn{} : base_of(true, traits, *qp);
  const int32_t distance = bth.psn.distance_from(base);
  const auto add = [&](bool has, const char* key, uint64_t number) {
    if (has) fields.add(key, number);
  };
  if (qp != nullptr && distance >= 0) {
    fields.list.push_back({"psn",
                           {.kind = Value::Kind::relative,
                            .number = static_cast<uint64_t>(distance),
                            .text = {},
                            .bytes = {}},
                           {}});
  } else {
    add(true, "psn", bth.psn.value());
  }
  add(qp == nullptr, "dqpn", bth.destination_qp.value);
  if (bth.ack_request) fields.add_flag("ackreq");
  if (bth.solicited) fields.add_flag("se");
  add(bth.pkey != wire::kDefaultPkey, "pkey", bth.pkey);
  add(bth.fecn, "fecn", 1);
  add(bth.becn, "becn", 1);
  add(traits.xrceth, "srqn", ext.xrc_srq.value);
  add(traits.deth, "qkey", ext.deth.qkey);
  add(traits.deth, "sqpn", ext.deth.source_qp.value);
  add(traits.feth, "placement", ext.feth.placement);
  add(traits.feth, "selectivity", ext.feth.selectivity);
  add(traits.reth, "va", ext.reth.virtual_address);
  add(traits.reth, "rkey", ext.reth.rkey.value);
  add(traits.reth, "len", ext.reth.length_bytes);
  add(traits.atomic_eth, "va", ext.atomic.virtual_address);
  add(traits.atomic_eth, "rkey", ext.atomic.rkey.value);
  const bool is_swap = packet.operation() == wire::Operation::compare_swap;
  add(traits.atomic_eth && is_swap, "compare", ext.atomic.compare);
  add(traits.atomic_eth, is_swap ? "swap" : "add", ext.atomic.swap_or_add);
  const bool is_rnr = traits.aeth && wire::syndrome::is_rnr(ext.aeth.syndrome);
  add(is_rnr, "timer", ext.aeth.syndrome & 0x1fu);
  add(traits.aeth, "msn", ext.aeth.msn);
  add(traits.atomic_ack_eth, "original", ext.atomic_original);
  add(traits.imm, "imm", network_order(ext.immediate));
  add(traits.ieth, "inv", ext.invalidate.value);
  add(traits.payload, "payload", packet.payload.size());
  if (!wire::icrc_matches(packet.l3)) fields.add_word("icrc", "bad");
  return opcode_name(bth.opcode, ext.aeth.syndrome) + " " + to_text(fields);
}

}  // namespace

std::vector<std::byte> make_frame(const Frame& frame, const Objects& objects, const Ends& ends) {
  const Maker maker(frame, objects);
  const std::vector<std::byte> payload = maker.payload();
  const wire::Bth bth = maker.bth(payload.size());
  std::vector<std::byte> body(kMaxHeaderBytes);
  body.resize(wire::write_transport_headers(body.data(), bth, maker.extended()));
  body.insert(body.end(), payload.begin(), payload.end());
  body.resize(body.size() + bth.pad_bytes);
  body.resize(body.size() - std::min<size_t>(maker.number("cut", 0), body.size()));

  wire::Ip ip = ends.ip;
  ip.traffic_class = static_cast<uint8_t>(maker.number("tclass", 0));
  if (frame.fields.has("src"))
    ip.source.bytes.back() = static_cast<uint8_t>(maker.number("src", 0));
  const wire::HeaderTemplate headers(ends.ethernet, ip, {.source_port = ends.udp_source_port});
  std::vector<std::byte> bytes(headers.size_bytes());
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(bytes.size() + wire::kIcrcBytes);
  headers.write(bytes.data(), body.size() + wire::kIcrcBytes);
  // A frame that is cut within the BTH has nothing that an ICRC could be of.
  if (body.size() >= wire::kBthBytes)
    wire::store_icrc(std::span(bytes).subspan(headers.l3_offset_bytes()));
  if (frame.fields.text("icrc") == "bad") bytes.back() ^= std::byte{0xff};
  return bytes;
}

std::string differences(const Frame& expected, std::span<const std::byte> came,
                        const Objects& objects) {
  wire::Packet packet;
  const wire::ParseError error = wire::parse_frame(came, packet);
  if (error != wire::ParseError::none) return std::string("not a frame: ") += to_string(error);
  const Fields& fields = expected.fields;
  const ScriptQp& qp = objects.qp(fields.text("qp", objects.last_qp()));
  const Opcode& opcode = *find_opcode(expected.opcode);
  Comparison compare(fields, objects);
  const std::string name = opcode_name(packet.bth.opcode, packet.ext.aeth.syndrome);
  if (packet.bth.opcode != opcode_of(expected, qp) ||
      (packet.operation() == wire::Operation::acknowledge && opcode.syndrome &&
       name != expected.opcode)) {
    compare.text("the opcode", expected.opcode, name);
    return compare.found();
  }
  const wire::Bth& bth = packet.bth;
  compare.psn(base_of(true, packet.traits(), qp), bth.psn);
  compare.number("dqpn", bth.destination_qp.value, qp.wire_qpn.value);
  compare.number("ackreq", bth.ack_request, 0);
  compare.number("se", bth.solicited, 0);
  compare.number("mig", bth.mig_req, {});
  compare.number("pad", bth.pad_bytes, pad_of(packet.payload.size()));
  compare.number("pkey", bth.pkey, wire::kDefaultPkey);
  compare.number("fecn", bth.fecn, 0);
  compare.number("becn", bth.becn, bth.opcode == wire::kCnpOpcode ? 1 : 0);
  compare.number("resv6", bth.reserved6, 0);
  compare.number("resv7", bth.reserved7, 0);
  compare.number("tclass", packet.ip.traffic_class, {});
  compare.number("code", bth.opcode, {});
  if (!wire::icrc_matches(packet.l3)) compare.text("the ICRC", "right", "wrong");
  compare_headers(compare, opcode, packet, qp);
  compare.payload(packet.payload);
  return compare.found();
}

std::string frame_text(std::span<const std::byte> frame, const Objects& objects) {
  wire::Packet packet;
  const wire::ParseError error = wire::parse_frame(frame, packet);
  if (error != wire::ParseError::none)
    return std::to_string(frame.size()) + " bytes, no frame: " + std::string(to_string(error));
  return text_of(packet, objects.by_wire_qpn(packet.bth.destination_qp));
}

}  // namespace rocemu::script
