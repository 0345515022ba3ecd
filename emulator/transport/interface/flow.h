// A flow: which frames it is about, and where they go (ibv_create_flow(3)).
#pragma once

#include <cstdint>

#include "emulator/transport/interface/rss.h"
#include "emulator/wire/frame_fields.h"

namespace rocemu::transport {

// enum ibv_flow_attr_type
enum class FlowKind : uint8_t { normal = 0, all_default = 1, multicast_default = 2, sniffer = 3 };

struct FlowCounters {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

struct Flow {
  FlowKind kind = FlowKind::normal;
  uint16_t priority = 0;  // 0 is the best
  wire::FrameFields value{};
  wire::FrameFields mask{};
  bool drops = false;
  bool has_tag = false;
  uint32_t tag = 0;
  Receivers receivers;               // the QPs that get the frames
  FlowCounters* counters = nullptr;  // outlive the flow
};

}  // namespace rocemu::transport
