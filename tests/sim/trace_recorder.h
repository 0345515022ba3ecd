// Records what a simulated network and the endpoints on it do, as a trace: a scenario that fails
// can be looked at with what shows the traces of a NIC (emulator/trace/show).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "emulator/trace/format/reader.h"
#include "emulator/transport/interface/observer.h"

namespace rocemu::sim_scenarios {

class TraceRecorder {
 public:
  // `what` is told in the header: "sim_scenarios --seed 17".
  TraceRecorder(const sim::Fabric& fabric, const std::string& what);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // Nodes in the order of their indices; becomes the observer of their endpoints.
  void add_node(sim::EndpointNode& node);
  // A QP, before it is connected.
  void add_qp(uint32_t node, wire::Qpn qpn, uint32_t peer_node, wire::Qpn peer_qpn,
              const transport::QpAttributes& attributes);

  void on_frame(const sim::FrameRecord& frame);
  void on_post(uint32_t node, wire::Qpn qpn, const sim::SendRequest& request);
  void on_post(uint32_t node, wire::Qpn qpn, const sim::ReceiveRequest& request);
  void on_completion(uint32_t node, bool is_receive, const transport::Completion& completion);

  // Returns the trace as it would have been read from a file.
  trace::Trace take();

 private:
  class NodeObserver;
  using End = std::pair<uint32_t, uint32_t>;  // node, QPN

  struct Qp {
    End peer;
    trace::Cause cause = trace::Cause::none;  // why what is sent again is
    std::map<uint32_t, unsigned> again;       // PSNs that are about to be sent again
    std::deque<trace::Record> arrived;        // packets at which the QP has not looked yet
    uint32_t timeouts = 0;                    // in a row
    uint32_t retry_count = 0;
    uint8_t min_rnr_timer = 0;
    uint8_t syndrome = 0;  // of the last AETH that has come
  };

  trace::Record& add(trace::Kind kind, uint32_t node, uint32_t qpn);
  void on_sent(const sim::FrameRecord& frame, trace::Record header);
  void on_event(uint32_t node, uint32_t qpn, transport::TraceEvent event, uint32_t value);
  void on_refusal(uint32_t node, uint32_t qpn, transport::Refusal refusal, uint32_t psn);
  void on_delivered(Qp& qp, uint32_t psn);
  void name(trace::Table table, uint16_t number, const std::string& text);

  const sim::Fabric& fabric_;
  trace::Trace trace_;
  std::vector<std::unique_ptr<NodeObserver>> observers_;
  std::map<End, Qp> qps_;
  std::map<End, End> sources_;  // who sends to a QP
};

}  // namespace rocemu::sim_scenarios
