// The notification point: where a flow's receiver answers marks of congestion (CE, RFC 3168) with
// congestion notification packets (CNPs; IBTA vol 1, annex A17).
//
// 1. Every packet with CE that is for a QP and from its peer is counted, whatever the service; the
//    QP need not have an algorithm of its own.
// 2. Of one flow, a CNP is sent for the first of them, and for none of the next until the interval
//    is over. A flow is what one QP of a peer sends to one QP here.
// 3. What is remembered of flows is bounded. In a full table the flows whose interval is over are
//    forgotten, and when there are none, no CNP is sent for a new one.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>

#include "base/time.h"
#include "emulator/congestion/settings.h"
#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

class NotificationPoint {
 public:
  struct FlowKey {
    wire::Gid source{};
    wire::Qpn source_qp{};
    wire::Qpn destination_qp{};
    bool operator==(const FlowKey&) const = default;
  };

  explicit NotificationPoint(const congestion::NotificationSettings& settings)
      : settings_(settings) {}

  // A marked packet of the flow has come: true when a CNP is due.
  bool on_marked(TimeNs now, const FlowKey& flow);

  // The traffic class of CNPs. They carry no data and are not marked themselves.
  uint8_t traffic_class() const { return static_cast<uint8_t>(settings_.cnp_dscp << 2); }

  // CNPs that are to leave by the next transmit call; what does not fit is dropped.
  void queue(const Cnp& cnp) {
    if (queued_.size() < kMaxQueued) queued_.push_back(cnp);
  }
  bool empty() const { return queued_.empty(); }
  const Cnp& next() const { return queued_.front(); }
  void pop() { queued_.pop_front(); }

 private:
  static constexpr size_t kMaxFlows = 4096;
  static constexpr size_t kMaxQueued = 1024;

  struct HashOfFlow {
    size_t operator()(const FlowKey& flow) const noexcept {
      return std::hash<wire::Gid>{}(flow.source) * 31 +
             (size_t{flow.source_qp.value} << 24 ^ flow.destination_qp.value);
    }
  };

  congestion::NotificationSettings settings_;
  std::unordered_map<FlowKey, TimeNs, HashOfFlow> silent_until_;
  std::deque<Cnp> queued_;
};

}  // namespace rocemu::transport
