// FlowTable says which frames raw packet QPs get (ibv_create_flow(3)). A frame of RoCE goes to the
// QP that it names, and to sniffers besides; any other goes to all flows of the best priority among
// those that match, or else to the default ones.
//
// Flows belong to the device, which bounds how many there are: each frame is held against all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "emulator/transport/interface/flow.h"
#include "emulator/wire/frame_fields.h"

namespace rocemu::transport {

class FlowTable {
 public:
  // The flow stays where it is until it is removed.
  void add(Flow& flow) {
    const auto later = [&](const Flow* one) { return one->priority > flow.priority; };
    flows_.insert(std::find_if(flows_.begin(), flows_.end(), later), &flow);
  }
  void remove(const Flow& flow) { std::erase(flows_, &flow); }
  bool empty() const { return flows_.empty(); }

  // Calls deliver(qpn, flow, number) for each flow that the frame is to go to, with a number that
  // no other frame has. True when it is then done with: it is no frame of RoCE, and some flow wants
  // it; or it has a VLAN tag, is of another network than the port's, and came here for flows alone.
  template <class Deliver>
  bool steer(std::span<const std::byte> frame, Deliver&& deliver) {
    const wire::FrameFields fields = wire::frame_fields(frame);
    const bool roce = wire::is_roce(fields);
    ++asked_;
    const auto hand = [&](Flow& flow) {
      if (flow.counters != nullptr) {
        ++flow.counters->packets;
        flow.counters->bytes += frame.size();
      }
      if (!flow.drops) deliver(flow.receivers.choose(fields), flow, asked_);
    };
    bool taken = !roce && steer_normal(fields, hand);
    if (!roce && !taken) taken = steer_default(fields, hand);
    for (Flow* flow : flows_)
      if (flow->kind == FlowKind::sniffer && matches(fields, flow->value, flow->mask)) hand(*flow);
    return taken || fields.tagged != 0;
  }

 private:
  template <class Hand>
  bool steer_normal(const wire::FrameFields& fields, Hand& hand) {
    const Flow* best = nullptr;
    for (Flow* flow : flows_) {
      if (best != nullptr && flow->priority != best->priority) break;
      if (flow->kind != FlowKind::normal || !matches(fields, flow->value, flow->mask)) continue;
      best = flow;
      hand(*flow);
    }
    return best != nullptr;
  }
  template <class Hand>
  bool steer_default(const wire::FrameFields& fields, Hand& hand) {
    const bool multicast = (fields.destination_mac[0] & 1) != 0;
    bool taken = false;
    for (Flow* flow : flows_) {
      const bool wanted = flow->kind == FlowKind::all_default ||
                          (multicast && flow->kind == FlowKind::multicast_default);
      if (!wanted) continue;
      taken = true;
      hand(*flow);
    }
    return taken;
  }

  std::vector<Flow*> flows_;  // the best priority first
  uint64_t asked_ = 0;        // frames
};

}  // namespace rocemu::transport
