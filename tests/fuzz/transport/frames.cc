// Frames that the transport target puts on the wire: captured ones, altered or not, and new ones
// that are well formed but need not make sense. New ones stay close to what the QP waits for.
#include <algorithm>
#include <cstring>

#include "emulator/wire/build.h"
#include "emulator/wire/icrc.h"
#include "tests/fuzz/transport/world.h"

namespace rocemu::fuzz {

namespace {

using wire::Operation;

constexpr size_t kMaxCaptured = 64;
constexpr std::byte kPayload{0x47};

bool is_response(Operation operation) {
  return operation >= Operation::read_response_first && operation <= Operation::atomic_acknowledge;
}

wire::Transport transport_of(transport::Service service) {
  switch (service) {
    case transport::Service::uc:
      return wire::Transport::uc;
    case transport::Service::ud:
      return wire::Transport::ud;
    case transport::Service::xrc_send:
    case transport::Service::xrc_receive:
      return wire::Transport::xrc;
    default:
      return wire::Transport::rc;
  }
}

uint32_t psns_of(const wire::Packet& packet, uint32_t mtu_bytes) {
  if (packet.operation() != Operation::read_request) return 1;
  return std::max(1u, (packet.ext.reth.length_bytes + mtu_bytes - 1) / mtu_bytes);
}

Frame rebuild(const wire::Packet& packet) {
  return wire::build_frame(packet.ethernet, packet.ip, packet.udp, packet.bth, packet.ext,
                           packet.payload);
}

}  // namespace

void World::capture(Frame frame) {
  captured_.push_back(std::move(frame));
  if (captured_.size() > kMaxCaptured) captured_.pop_front();
}

// Requests say where a requester is, answers what a responder expects next.
void World::note_sent(const wire::Packet& packet) {
  QueuePair* const from = qps_[packet.udp.source_port % kMaxQps].get();
  if (from == nullptr) return;
  if (!is_response(packet.operation())) {
    from->sent_psn = packet.bth.psn;
    return;
  }
  const bool accepted = !packet.traits().aeth || wire::syndrome::is_ack(packet.ext.aeth.syndrome);
  from->request_psn = packet.bth.psn + (accepted ? 1 : 0);
}

void World::alter_captured() {
  const uint8_t choice = input_.u8();
  const uint8_t what = input_.u8();
  if (captured_.empty()) return;
  Frame frame = captured_[captured_.size() - 1 - choice % captured_.size()];
  wire::Packet packet;
  if (wire::parse_frame(frame, packet) != wire::ParseError::none) return;
  switch (what % 12) {
    case 0:
      packet.bth.psn = packet.bth.psn + static_cast<uint32_t>(static_cast<int8_t>(input_.u8()));
      break;
    case 1:
      packet.bth.ack_request = !packet.bth.ack_request;
      break;
    case 2:
      packet.ext.aeth.syndrome = input_.u8();
      break;
    case 3:
      packet.ext.reth.length_bytes = input_.pick<uint32_t>({0, 1, 255, 4096, 0xffffffff});
      break;
    case 4:
      packet.bth.opcode = static_cast<uint8_t>((packet.bth.opcode & 0xe0) | (input_.u8() & 0x1f));
      break;
    case 5:
      packet.payload = packet.payload.first(packet.payload.size() / 8 * 4);
      packet.bth.pad_bytes = 0;
      break;
    case 6:
      frame[frame.size() - 1 - input_.u8() % frame.size()] ^= std::byte{1};
      waiting_.push_back(std::move(frame));
      return;
    case 7:
      if (const QueuePair* const qp = any()) packet.bth.destination_qp = qp->qpn;
      break;
    default:
      break;
  }
  waiting_.push_back(rebuild(packet));
  if ((what & 0x80) == 0) deliver();
}

Operation World::draw_operation() { return static_cast<Operation>(input_.below(0x18)); }

wire::ExtendedHeaders World::draw_headers(const QueuePair& qp) {
  wire::ExtendedHeaders ext;
  const transport::Sge target = draw_sge(draw_length(qp));
  ext.reth = {target.address, wire::RKey{target.lkey.value}, target.length_bytes};
  const uint8_t value = input_.u8();
  if (value == 0xff) ext.reth.length_bytes = input_.pick<uint32_t>({0x80000000, 0xffffffff});
  ext.atomic = {target.address & ~uint64_t{value < 0xf0 ? 7u : 0u}, ext.reth.rkey, value % 3u,
                value / 3u % 3};
  ext.atomic_original = value;
  ext.aeth.syndrome = input_.pick<uint8_t>(
      {0x1f, 0x60, 0x61, 0x62, 0x63, 0x20, 0x3f, 0x64, 0x05, 0x40, 0x7f, 0xe0});
  ext.aeth.msn = value;
  ext.immediate = value;
  ext.deth = {value < 0xf8 ? kQkey : value, wire::Qpn{value}};
  ext.xrc_srq = wire::Qpn{value < 0xf8 ? kSrq : value};
  return ext;
}

void World::craft() {
  const QueuePair* const qp = any();
  const Operation operation = draw_operation();
  const uint8_t oddity = input_.u8();
  if (qp == nullptr) return;
  const transport::QpAttributes& attributes = qp->attributes;

  wire::Packet packet;
  packet.ip.source = attributes.path.remote_gid;
  packet.ip.destination = attributes.path.local_gid;
  packet.udp.source_port = 0xffff;
  packet.bth.opcode = wire::bth_opcode(transport_of(qp->service), operation);
  if (!packet.traits().known) return;
  packet.bth.destination_qp = qp->qpn;
  packet.bth.ack_request = (oddity & 1) != 0;
  packet.bth.solicited = (oddity & 2) != 0;
  const uint8_t choice = input_.u8();
  const uint32_t delta = choice < 0xc0 ? 0 : choice - 0xe0u;
  packet.bth.psn = (is_response(operation) ? qp->sent_psn : qp->request_psn) + delta;
  packet.ext = draw_headers(*qp);

  const uint32_t mtu = attributes.path_mtu_bytes;
  Frame payload;
  if (packet.traits().payload)
    payload.assign(std::min<uint32_t>(input_.pick<uint32_t>({mtu, 0, 1, 8, mtu - 1, mtu + 4}),
                                      wire::kMaxMtuBytes),
                   kPayload);
  packet.payload = payload;
  packet.bth.pad_bytes = static_cast<uint8_t>(-payload.size() & 3);
  switch (oddity >> 2) {
    case 60:
      if (all_services_) packet.bth.destination_qp = wire::kMulticastQpn;
      break;
    case 61:
      packet.bth.destination_qp = destroyed_;
      break;
    case 62:
      packet.bth.pkey = 0x7fff;
      break;
    case 63:
      packet.ip.source.bytes[15] ^= 2;
      break;
    default:
      break;
  }
  // The guess of what comes next; an answer will put it right.
  if (!is_response(operation) && packet.bth.psn == qp->request_psn)
    find(qp->qpn)->request_psn = packet.bth.psn + psns_of(packet, mtu);
  waiting_.push_back(rebuild(packet));
  if ((oddity & 4) == 0) deliver();
}

}  // namespace rocemu::fuzz
