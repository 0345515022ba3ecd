#include "emulator/trace/record/cm_record.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "emulator/wire/cm_message.h"

namespace rocemu::trace {

namespace {

// Spoken is what a message says of the QPs at both ends, as its sender sees them.
struct Spoken {
  uint32_t own_id = 0;
  uint32_t other_id = 0;
  wire::Qpn own_qpn{};
  wire::Qpn other_qpn{};
  uint32_t psn = 0;
  uint32_t code = 0;
};

template <typename Message>
Spoken look_at(const Message& message) {
  Spoken spoken;
  if constexpr (requires { message.local_comm_id; }) spoken.own_id = message.local_comm_id;
  if constexpr (requires { message.remote_comm_id; }) spoken.other_id = message.remote_comm_id;
  if constexpr (requires { message.request_id; }) spoken.own_id = message.request_id;
  if constexpr (requires { message.local_qpn; }) spoken.own_qpn = message.local_qpn;
  // A REP does not say whether it is an XRC target's, but those have no other number.
  if constexpr (std::is_same_v<Message, wire::CmRep>)
    if (message.local_qpn.value == 0) spoken.own_qpn = {message.local_eecn};
  if constexpr (requires { message.remote_qpn; }) spoken.other_qpn = message.remote_qpn;
  if constexpr (requires { message.qpn; }) spoken.own_qpn = message.qpn;
  if constexpr (requires { message.starting_psn; }) spoken.psn = message.starting_psn.value();
  if constexpr (requires { message.reason; }) spoken.code = message.reason;
  if constexpr (requires { message.status; }) spoken.code = message.status;
  return spoken;
}

}  // namespace

Record cm_record(std::span<const std::byte> mad, bool sent) {
  Record record;
  wire::CmMessage message;
  if (wire::parse_cm(mad, message) != wire::CmParseError::none) return record;
  const Spoken spoken = std::visit([](const auto& body) { return look_at(body); }, message.body);
  record.kind = sent ? Kind::cm_sent : Kind::cm_received;
  record.opcode = static_cast<uint8_t>(wire::load_mad_header(mad.data()).attribute_id);
  record.value = sent ? uint64_t{spoken.own_id} << 32 | spoken.other_id
                      : uint64_t{spoken.other_id} << 32 | spoken.own_id;
  record.qpn = (sent ? spoken.own_qpn : spoken.other_qpn).value;
  record.peer_qpn = (sent ? spoken.other_qpn : spoken.own_qpn).value;
  record.psn = spoken.psn;
  record.code = static_cast<uint8_t>(std::min(spoken.code, uint32_t{0xff}));
  return record;
}

}  // namespace rocemu::trace
