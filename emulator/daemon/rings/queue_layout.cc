#include "emulator/daemon/rings/queue_layout.h"

#include <algorithm>
#include <bit>

#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kAlignBytes = 64;

constexpr size_t aligned(size_t bytes) { return (bytes + kAlignBytes - 1) & ~(kAlignBytes - 1); }

uint32_t ring_entries(uint32_t wanted) { return wanted == 0 ? 0 : std::bit_ceil(wanted); }

// The number granted of what is asked for: there is room for `possible`, the device allows `limit`.
uint32_t granted(const device::DeviceLimits& limits, uint32_t wanted, uint32_t possible,
                 uint32_t limit) {
  return limits.grants_exactly ? wanted : std::max(wanted, std::min(possible, limit));
}

// The number of elements granted: as many as fit into the slot.
uint32_t granted_sge(const device::DeviceLimits& limits, size_t room_bytes, uint32_t limit,
                     uint32_t wanted) {
  return granted(limits, wanted, static_cast<uint32_t>(room_bytes / sizeof(rocemu_sge)), limit);
}

void set_entries(const device::DeviceLimits& limits, uint32_t wanted, RingLayout& ring) {
  ring.entries = ring_entries(wanted);
  ring.granted = limits.grants_exactly ? wanted : ring.entries;
}

RingLayout lay_out_receives(const device::DeviceLimits& limits, uint32_t max_wr, uint32_t max_sge,
                            uint32_t sge_limit) {
  const size_t stride = aligned(sizeof(rocemu_recv_wqe) + max_sge * sizeof(rocemu_sge));
  RingLayout ring;
  set_entries(limits, max_wr, ring);
  ring.stride_bytes = static_cast<uint32_t>(stride);
  ring.max_sge = granted_sge(limits, stride - sizeof(rocemu_recv_wqe), sge_limit, max_sge);
  return ring;
}

}  // namespace

SrqLayout lay_out_srq(const device::DeviceLimits& limits, const device::SrqSpec& spec) {
  SrqLayout layout;
  layout.ring = lay_out_receives(limits, spec.max_wr, spec.max_sge, limits.max_srq_sge);
  layout.ring.offset_bytes = aligned(sizeof(rocemu_queue_header));
  layout.memory_bytes = layout.ring.offset_bytes + layout.ring.size_bytes();
  return layout;
}

QpLayout lay_out_qp(const device::DeviceLimits& limits, const device::QpSpec& spec) {
  QpLayout layout;
  const size_t send_payload = std::max<size_t>(
      spec.max_send_sge * sizeof(rocemu_sge) + spec.max_tso_header, spec.max_inline_data);
  const size_t send_stride = aligned(sizeof(rocemu_send_wqe) + send_payload);
  const size_t send_room = send_stride - sizeof(rocemu_send_wqe);
  set_entries(limits, spec.max_send_wr, layout.send);
  layout.send.stride_bytes = static_cast<uint32_t>(send_stride);
  layout.send.offset_bytes = aligned(sizeof(rocemu_queue_header));
  layout.send.max_sge =
      granted_sge(limits, send_room - spec.max_tso_header, limits.max_sge, spec.max_send_sge);
  layout.max_tso_header = spec.max_tso_header;
  layout.max_inline_data = granted(limits, spec.max_inline_data, static_cast<uint32_t>(send_room),
                                   limits.max_inline_data);

  layout.receive = lay_out_receives(limits, spec.max_recv_wr, spec.max_recv_sge, limits.max_sge);
  layout.receive.offset_bytes = layout.send.offset_bytes + layout.send.size_bytes();
  layout.memory_bytes = layout.receive.offset_bytes + layout.receive.size_bytes();
  return layout;
}

uint32_t cq_entries(const device::DeviceLimits& limits, uint32_t cqe) {
  const uint32_t wanted = std::max(cqe, 1u);
  return limits.grants_exactly ? wanted : std::bit_ceil(wanted);
}

size_t cq_memory_bytes(uint32_t entries) {
  return ROCEMU_CQ_RING_OFFSET + size_t{std::bit_ceil(entries)} * sizeof(rocemu_cqe);
}

}  // namespace rocemu::daemon
