#include "emulator/sim/packet_text.h"

#include <array>
#include <cstdio>

#include "emulator/wire/icrc.h"
#include "emulator/wire/packet.h"

namespace rocemu::sim {

namespace {

constexpr std::array kNames = {
    "SEND_FIRST",     "SEND_MIDDLE",    "SEND_LAST",    "SEND_LAST_IMM",   "SEND_ONLY",
    "SEND_ONLY_IMM",  "WRITE_FIRST",    "WRITE_MIDDLE", "WRITE_LAST",      "WRITE_LAST_IMM",
    "WRITE_ONLY",     "WRITE_ONLY_IMM", "READ_REQUEST", "READ_RESP_FIRST", "READ_RESP_MIDDLE",
    "READ_RESP_LAST", "READ_RESP_ONLY", "ACK",          "ATOMIC_ACK",      "COMPARE_SWAP",
    "FETCH_ADD"};

template <class... Args>
std::string format(const char* form, Args... args) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), form, args...);
  return text.data();
}

std::string syndrome_text(const wire::Aeth& aeth) {
  const uint8_t s = aeth.syndrome;
  if (wire::syndrome::is_ack(s)) return format(" msn %u", aeth.msn);
  if (wire::syndrome::is_rnr(s)) return format(" RNR timer %u msn %u", s & 0x1fu, aeth.msn);
  return format(" NAK 0x%02x msn %u", s, aeth.msn);
}

}  // namespace

std::string describe(std::span<const std::byte> frame, transport::Icrc icrc) {
  wire::Packet packet;
  const wire::ParseError error = wire::parse_frame(frame, packet);
  if (error != wire::ParseError::none)
    return format("(%zu bytes: %s)", frame.size(), std::string(wire::to_string(error)).c_str());
  const uint8_t operation = packet.bth.opcode & 0x1f;
  std::string text =
      format("%-16s qp %u psn %u", operation < kNames.size() ? kNames[operation] : "?",
             packet.bth.destination_qp.value, packet.bth.psn.value());
  const wire::OpcodeTraits& traits = packet.traits();
  if (traits.payload) text += format(" %zu B", packet.payload.size());
  if (traits.reth)
    text += format(" va 0x%llx key 0x%x len %u",
                   static_cast<unsigned long long>(packet.ext.reth.virtual_address),
                   packet.ext.reth.rkey.value, packet.ext.reth.length_bytes);
  if (traits.atomic_eth)
    text += format(" va 0x%llx key 0x%x",
                   static_cast<unsigned long long>(packet.ext.atomic.virtual_address),
                   packet.ext.atomic.rkey.value);
  if (traits.aeth) text += syndrome_text(packet.ext.aeth);
  if (packet.bth.ack_request) text += " ackreq";
  if (packet.bth.solicited) text += " se";
  if (icrc == transport::Icrc::there && !wire::icrc_matches(packet.l3)) text += " (bad ICRC)";
  return text;
}

std::string describe(const FrameRecord& record, transport::Icrc icrc) {
  const bool sent = record.kind == FrameRecord::Kind::sent;
  std::string text = format("%14.3f us  %u %s %u  ", static_cast<double>(record.now_ns) / 1000,
                            record.from, sent ? "->" : "=>", record.to);
  text += describe(record.frame, icrc);
  if (record.corrupted) text += "  [corrupted]";
  if (!sent || record.fate == nullptr) return text;
  switch (record.fate->loss) {
    case impairment::Loss::none:
      break;
    case impairment::Loss::random:
      return text + "  [lost]";
    case impairment::Loss::queue_full:
      return text + "  [lost: queue full]";
    case impairment::Loss::outage:
      return text + "  [lost: outage]";
  }
  if (record.fate->arrival_count > 1) text += "  [duplicated]";
  return text;
}

std::string describe(const transport::Counters& counters) {
  std::string text;
  for (const auto& [event, name] : transport::kCounterNames)
    if (counters[event] > 0)
      text += format("%s%s %llu", text.empty() ? "" : " ", name,
                     static_cast<unsigned long long>(counters[event]));
  return text;
}

}  // namespace rocemu::sim
