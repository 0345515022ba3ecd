#include "emulator/transport/service/ud_qp.h"

#include <array>

#include "emulator/transport/qp/payload.h"

namespace rocemu::transport {

namespace {

constexpr uint32_t kGrhBytes = 40;
constexpr std::array<std::byte, kGrhBytes - wire::kIpv4Bytes> kBeforeIpv4{};
// RoCE has no service level. The completion has to tell which header stands before the data (annex
// A17.4.5.1), and programs look for that in this field as ConnectX fills it: bit 3 for RoCE v2,
// then 1 for IPv6, 2 for IPv4.
constexpr uint8_t kRoceOverUdpIpv6 = 9;
constexpr uint8_t kRoceOverUdpIpv4 = 10;
constexpr uint32_t kControlledQkey = 0x80000000;

}  // namespace

WcStatus UdQp::find_fault(const SendWork& work) const {
  if (work.opcode != WorkOpcode::send && work.opcode != WorkOpcode::send_imm)
    return WcStatus::local_qp_operation_error;
  if (work.length_bytes > context_.attributes.path_mtu_bytes) return WcStatus::local_length_error;
  return context_.resources.addresses->find(context_.resources.pd, work.address_handle) != nullptr
             ? WcStatus::success
             : WcStatus::local_qp_operation_error;
}

const Path* UdQp::address(const SendWork& work, wire::Bth& bth, wire::ExtendedHeaders& ext) const {
  bth.destination_qp = work.remote_qpn;
  // A request cannot name a controlled Q_Key: it then gets the QP's own (IBTA vol 1, 10.2.5).
  const bool own = (work.remote_qkey & kControlledQkey) != 0;
  ext.deth = {own ? context_.attributes.qkey : work.remote_qkey, context_.qpn};
  return context_.resources.addresses->find(context_.resources.pd, work.address_handle);
}

// What the network may bring to this QP by mistake or ill will.
bool UdQp::accepts(const wire::Packet& packet) const {
  const bool multicast = packet.bth.destination_qp == wire::kMulticastQpn;
  return packet.transport() == context_.transport && pkey_matches(packet) &&
         (multicast || context_.resources.addresses->is_local(packet.ip.destination)) &&
         packet.payload.size() <= context_.attributes.path_mtu_bytes;
}

void UdQp::on_packet(TimeNs, const wire::Packet& packet) {
  if (!receives()) {
    ++context_.counters.rx_no_qp;
    return;
  }
  if (!accepts(packet)) {
    ++context_.counters.rx_mismatched;
    return;
  }
  if (packet.ext.deth.qkey != context_.attributes.qkey) {
    ++context_.counters.qkey_violations;
    return;
  }
  if (!take_receive()) return;
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  if (kGrhBytes + bytes > receive().length_bytes) {
    ++context_.counters.rx_dropped;
    give_up_receive();
    return;
  }
  context_.counters.rx_payload_bytes += bytes;

  const wire::Psn psn = packet.bth.psn;
  const bool ipv4 = packet.ip.destination.is_ipv4_mapped();
  const bool scattered =
      (ipv4 ? scatter(context_, receive(), 0, kBeforeIpv4, psn) &&
                  scatter(context_, receive(), kBeforeIpv4.size(),
                          packet.l3.first(wire::kIpv4Bytes), psn)
            : scatter(context_, receive(), 0, packet.l3.first(wire::kIpv6Bytes), psn)) &&
      scatter(context_, receive(), kGrhBytes, packet.payload, psn);
  if (!scattered) {
    fail_receive(WcStatus::local_protection_error, QpEvent::fatal);
    return;
  }

  Completion completion;
  completion.opcode = WcOpcode::receive;
  completion.has_immediate = packet.traits().imm;
  completion.immediate = packet.ext.immediate;
  completion.solicited = packet.bth.solicited;
  completion.byte_length = kGrhBytes + bytes;
  completion.has_grh = true;
  completion.source_qp = packet.ext.deth.source_qp;
  completion.service_level = ipv4 ? kRoceOverUdpIpv4 : kRoceOverUdpIpv6;
  complete_receive(completion);
}

}  // namespace rocemu::transport
