// Attributes and work requests of the transport target, drawn from the input.
#include <algorithm>

#include "tests/fuzz/transport/world.h"

namespace rocemu::fuzz {

namespace {

const wire::Gid kGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};

}  // namespace

// Each QP has its own source port, which tells whose a captured frame is.
void World::draw_attributes(QueuePair& qp) {
  transport::QpAttributes& attributes = qp.attributes;
  uint32_t index = 0;
  while (qps_[index].get() != &qp) ++index;
  const auto& peer = qps_[(index + input_.below(kMaxQps)) % kMaxQps];
  attributes.path.headers = wire::HeaderTemplate(
      {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {}}, {.source = kGid, .destination = kGid},
      {.source_port = static_cast<uint16_t>(0xc000 + index)});
  attributes.path.local_gid = attributes.path.remote_gid = kGid;
  attributes.qkey = kQkey;
  way_ = attributes.path;
  attributes.path_mtu_bytes = 256u << input_.below(5);
  attributes.remote_qpn = peer ? peer->qpn : destroyed_;
  attributes.receive_psn = wire::Psn(input_.pick<uint32_t>({0, 0xffffff, 0xfffffc, 0x7ffffe}));
  attributes.send_psn = wire::Psn(input_.pick<uint32_t>({0, 0xffffff, 0xfffffc, 0x7ffffe}));
  qp.request_psn = attributes.receive_psn;
  qp.sent_psn = attributes.send_psn;
  draw_live_attributes(qp, true);
}

// Those that may change while requests are under way: some in RTS, more in SQD (IBTA vol 1,
// 11.2.5.2).
void World::draw_live_attributes(QueuePair& qp, bool all) {
  transport::QpAttributes& attributes = qp.attributes;
  attributes.access = static_cast<uint32_t>(~input_.u8() & 0xe);
  attributes.min_rnr_timer = static_cast<uint8_t>(input_.below(32));
  if (!all) return;
  const uint8_t retries = input_.u8();
  attributes.retry_count = retries & 7;
  attributes.rnr_retry = retries >> 3 & 7;
  attributes.timeout = static_cast<uint8_t>(input_.below(20));
  attributes.notify_drained = input_.flag();
  attributes.max_rd_atomic = static_cast<uint8_t>(input_.below(5));
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(input_.below(5));
}

uint32_t World::draw_length(const QueuePair& qp) {
  const uint32_t mtu = qp.attributes.path_mtu_bytes;
  switch (input_.below(8)) {
    case 0:
      return 1;
    case 1:
      return 0;
    case 2:
      return mtu;
    case 3:
      return mtu - 1;
    case 4:
      return mtu + 1;
    case 5:
      return 3 * mtu;
    case 6:
      return input_.u8();
    default:
      return input_.u16();
  }
}

// Most lie in their region, some reach beyond or have a wrong key.
transport::Sge World::draw_sge(uint32_t length_bytes) {
  const uint8_t choice = input_.u8();
  const Arena::Region& region = arena_.region(choice % 8 < Arena::kRegions ? choice % 8 : 0);
  const uint32_t room = region.length_bytes > length_bytes ? region.length_bytes - length_bytes : 0;
  const uint32_t offset = choice >= 0xf0 ? room + 1 : room * (choice >> 3 & 3) / 4;
  return {region.address + offset, length_bytes, wire::LKey{region.key + (choice == 0xef ? 1 : 0)}};
}

void World::post_send(QueuePair& qp) {
  using transport::WorkOpcode;
  if (qp.service == transport::Service::xrc_receive) return;
  sim::SendRequest request;
  request.opcode = static_cast<WorkOpcode>(input_.below(7));
  const uint8_t flags = input_.u8();
  request.signaled = (flags & 1) == 0;
  request.solicited = (flags & 2) != 0;
  request.fence = (flags & 4) != 0;
  if (request.opcode == WorkOpcode::compare_swap && (flags & 0x30) == 0x10)
    request.opcode = WorkOpcode::atomic_write;
  if (request.opcode == WorkOpcode::fetch_add && (flags & 0x30) == 0x10)
    request.opcode = WorkOpcode::flush;
  request.feth = {static_cast<uint8_t>(flags & 0xf), static_cast<uint8_t>(flags >> 6)};
  request.flush_bytes = flags & 0xf;
  const bool is_inline = (flags & 8) != 0 && !is_read_or_atomic(request.opcode);
  if ((flags & 0x30) == 0x30) request.fault = transport::WcStatus::local_length_error;
  const transport::Sge remote = draw_sge(8);
  request.remote_address = remote.address + ((flags & 0x80) != 0 ? 4 : 0);
  request.rkey = remote.lkey.value;
  request.compare_add = input_.below(3);
  request.swap = input_.below(3);
  request.immediate = flags;
  request.address_handle = 1;
  request.remote_qpn = qp.attributes.remote_qpn;
  request.remote_qkey = kQkey;
  request.remote_srq = wire::Qpn{kSrq};
  if (all_services_) {
    const uint8_t oddity = input_.u8();
    if (oddity == 1) request.address_handle = 0;
    if (oddity == 2) request.remote_qkey = 0x80000000;
    if (oddity == 3) request.remote_srq = wire::Qpn{kSrq + 1};
    if (oddity < 0x20) request.remote_qpn = wire::kMulticastQpn;
  }

  const bool has_atomic_length =
      is_atomic(request.opcode) || request.opcode == WorkOpcode::atomic_write;
  uint32_t length = has_atomic_length                     ? transport::kAtomicBytes
                    : request.opcode == WorkOpcode::flush ? 0
                                                          : draw_length(qp);
  if (is_inline) {
    request.inline_payload.emplace(std::min<uint32_t>(length, 1024), std::byte{0x31});
  } else {
    // Unequal pieces, none of them empty.
    for (uint32_t pieces = 1 + input_.below(6); length > 0; --pieces) {
      const uint32_t part = pieces <= 1 ? length : std::max(length / 3, 1u);
      request.sges.push_back(draw_sge(part));
      length -= part;
    }
  }
  if (!qp.post_send(std::move(request))) return;
  if ((flags & 0x40) == 0) {
    ring(qp);
  } else {
    qp.unrung = true;
  }
}

void World::post_receive(QueuePair& qp) {
  transport::ReceiveWork work;
  const uint32_t pieces = input_.below(4);
  std::vector<transport::Sge> sges;
  for (uint32_t i = 0; i < pieces; ++i) {
    const uint32_t length = draw_length(qp);
    if (length > 0) sges.push_back(draw_sge(length));
  }
  work.length_bytes = sim::total_bytes(sges);
  work.sges.assign(sges);
  if (input_.below(64) == 63) work.fault = transport::WcStatus::local_qp_operation_error;
  if (qp.uses_srq) {
    shared_.post(std::move(work));
    return;
  }
  if (!qp.post_receive(std::move(work))) return;
  if (endpoint_.state(qp.qpn) != transport::QpState::error) return;
  // As rings.h has it: a receive for a QP in ERROR rings.
  ring(qp);
}

}  // namespace rocemu::fuzz
