#include "emulator/daemon/queue_layout.h"

#include <algorithm>
#include <bit>

#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kAlignBytes = 64;

constexpr size_t aligned(size_t bytes) { return (bytes + kAlignBytes - 1) & ~(kAlignBytes - 1); }

uint32_t ring_entries(uint32_t wanted) { return wanted == 0 ? 0 : std::bit_ceil(wanted); }

// What fits in the slot is granted, as far as the device goes.
uint32_t granted_sge(size_t room_bytes, uint32_t limit, uint32_t wanted) {
  const auto fitting = static_cast<uint32_t>(room_bytes / sizeof(rocemu_sge));
  return std::max(wanted, std::min(fitting, limit));
}

}  // namespace

QpLayout lay_out_qp(const device::DeviceLimits& limits, const device::QpSpec& spec) {
  QpLayout layout;
  const size_t send_payload =
      std::max<size_t>(spec.max_send_sge * sizeof(rocemu_sge), spec.max_inline_data);
  const size_t send_stride = aligned(sizeof(rocemu_send_wqe) + send_payload);
  const size_t send_room = send_stride - sizeof(rocemu_send_wqe);
  layout.send.entries = ring_entries(spec.max_send_wr);
  layout.send.stride_bytes = static_cast<uint32_t>(send_stride);
  layout.send.offset_bytes = aligned(sizeof(rocemu_queue_header));
  layout.send.max_sge = granted_sge(send_room, limits.max_sge, spec.max_send_sge);
  layout.max_inline_data = std::max(
      spec.max_inline_data, std::min(static_cast<uint32_t>(send_room), limits.max_inline_data));

  const size_t receive_stride =
      aligned(sizeof(rocemu_recv_wqe) + spec.max_recv_sge * sizeof(rocemu_sge));
  layout.receive.entries = ring_entries(spec.max_recv_wr);
  layout.receive.stride_bytes = static_cast<uint32_t>(receive_stride);
  layout.receive.offset_bytes = layout.send.offset_bytes + layout.send.size_bytes();
  layout.receive.max_sge =
      granted_sge(receive_stride - sizeof(rocemu_recv_wqe), limits.max_sge, spec.max_recv_sge);

  layout.memory_bytes = layout.receive.offset_bytes + layout.receive.size_bytes();
  return layout;
}

uint32_t cq_entries(uint32_t cqe) { return std::bit_ceil(std::max(cqe, 1u)); }

size_t cq_memory_bytes(uint32_t entries) {
  return ROCEMU_CQ_RING_OFFSET + size_t{entries} * sizeof(rocemu_cqe);
}

}  // namespace rocemu::daemon
