#include "emulator/transport/qp/payload.h"

#include <algorithm>
#include <cstring>

namespace rocemu::transport {

using wire::Operation;

namespace {

// True when the program that posted the element sees the range where the element says.
bool is_own_memory(const QpContext& context, const Sge& sge, const MemoryRange& range) {
  return range.address == sge.address && !range.on_demand &&
         context.resources.send_cq->reaches(range);
}

}  // namespace

Operation message_operation(WorkOpcode op, bool first, bool last) {
  using enum Operation;
  if (!last && is_send(op)) return first ? send_first : send_middle;
  if (!last) return first ? write_first : write_middle;
  switch (op) {
    case WorkOpcode::send:
      return first ? send_only : send_last;
    case WorkOpcode::send_imm:
      return first ? send_only_imm : send_last_imm;
    case WorkOpcode::send_invalidate:
      return first ? send_only_invalidate : send_last_invalidate;
    case WorkOpcode::write_imm:
      return first ? write_only_imm : write_last_imm;
    default:
      return first ? write_only : write_last;
  }
}

PdHandle domain_of(const QpContext& context, const SendWork& work) {
  return work.pd != 0 ? work.pd : context.resources.pd;
}

bool may_use(const QpContext& context, const SendWork& work, uint32_t access) {
  for (const Sge& sge : work.sges.view()) {
    MemoryRange range;
    if (sge.length_bytes > 0 &&
        !context.memory.check_local(domain_of(context, work), sge.lkey, sge.address,
                                    sge.length_bytes, access, range))
      return false;
  }
  return true;
}

bool gather(const QpContext& context, Burst& burst, const SendWork& work, uint32_t offset_bytes,
            uint32_t length_bytes, std::byte* to) {
  if (work.inline_payload != nullptr) {
    std::memcpy(to, work.inline_payload + offset_bytes, length_bytes);
    return true;
  }
  const std::byte* const begin = to;
  for (const Sge& sge : work.sges.view()) {
    if (offset_bytes >= sge.length_bytes) {
      offset_bytes -= sge.length_bytes;
      continue;
    }
    const uint32_t part = std::min(length_bytes, sge.length_bytes - offset_bytes);
    MemoryRange range;
    if (!context.memory.check_local(context.resources.pd, sge.lkey, sge.address + offset_bytes,
                                    part, kLocalRead, range))
      return false;
    if (work.inline_wqe_data != nullptr && is_own_memory(context, sge, range)) {
      std::memcpy(to, work.inline_wqe_data, part);
    } else if (to == begin && part == length_bytes) {
      burst.fetch(range, to, part);
    } else {
      context.memory.fetch(range, to, part, burst.fetch_tag());
    }
    to += part;
    length_bytes -= part;
    offset_bytes = 0;
    if (length_bytes == 0) return true;
  }
  return length_bytes == 0;
}

bool scatter(const QpContext& context, PdHandle pd, std::span<const Sge> sges,
             uint32_t offset_bytes, std::span<const std::byte> payload, ScatterKind kind,
             wire::Psn psn) {
  for (const Sge& sge : sges) {
    if (payload.empty()) break;
    if (offset_bytes >= sge.length_bytes) {
      offset_bytes -= sge.length_bytes;
      continue;
    }
    const auto part =
        static_cast<uint32_t>(std::min<size_t>(payload.size(), sge.length_bytes - offset_bytes));
    MemoryRange range;
    if (!context.memory.check_local(pd, sge.lkey, sge.address + offset_bytes, part, kLocalWrite,
                                    range))
      return false;
    const uint32_t tag = context.deferred.note_scatter(context.qp, kind, psn);
    context.memory.scatter(range, payload.data(), part, tag);
    payload = payload.subspan(part);
    offset_bytes = 0;
  }
  return payload.empty();
}

}  // namespace rocemu::transport
