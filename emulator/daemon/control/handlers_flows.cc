// Requests about flows and counters.
#include <cstring>

#include "emulator/daemon/control/handlers.h"

namespace rocemu::daemon::handlers {
namespace {

wire::FrameFields to_fields(const rocemu_frame_fields& m) {
  static_assert(sizeof(wire::FrameFields) == sizeof(rocemu_frame_fields));
  static_assert(offsetof(wire::FrameFields, source_ip) == offsetof(rocemu_frame_fields, source_ip));
  static_assert(offsetof(wire::FrameFields, protocol) == offsetof(rocemu_frame_fields, protocol));
  static_assert(offsetof(wire::FrameFields, tagged) == offsetof(rocemu_frame_fields, tagged));
  wire::FrameFields fields;
  std::memcpy(static_cast<void*>(&fields), &m, sizeof fields);
  return fields;
}

device::FlowSpec to_flow_spec(const rocemu_create_flow& m) {
  device::FlowSpec spec;
  spec.kind = m.kind;
  spec.priority = m.priority;
  spec.value = to_fields(m.value);
  spec.mask = to_fields(m.mask);
  spec.drops = (m.flags & ROCEMU_FLOW_DROPS) != 0;
  if ((m.flags & ROCEMU_FLOW_HAS_TAG) != 0) spec.tag = m.tag;
  spec.counters = m.counters;
  spec.qps.assign(m.qps, m.qps + m.qp_count);
  std::memcpy(spec.hash.key.data(), m.hash_key, spec.hash.key.size());
  spec.hash.fields = m.hash_fields;
  return spec;
}

}  // namespace

void create_flow(SessionCore& session, const rocemu_create_flow& message) {
  session.on_context(
      [spec = to_flow_spec(message)](EngineContext& context) {
        return context.hca().create_flow(context.id(), spec);
      },
      [&session](device::Handle flow) { session.answer_handle(flow); });
}

void create_counters(SessionCore& session, uint32_t) {
  session.on_context(
      [](EngineContext& context) { return context.hca().create_counters(context.id()); },
      [&session](device::Handle counters) { session.answer_handle(counters); });
}

void read_counters(SessionCore& session, uint32_t counters) {
  session.on_context(
      [counters](EngineContext& context) {
        return context.hca().read_counters(context.id(), counters);
      },
      [&session](const transport::FlowCounters& counts) {
        rocemu_counters_reply body{};
        body.packets = counts.packets;
        body.bytes = counts.bytes;
        session.answer(body);
      });
}

}  // namespace rocemu::daemon::handlers
