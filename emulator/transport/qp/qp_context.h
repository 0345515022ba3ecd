// QpContext holds what the requester and the responder of one QP share.
#pragma once

#include <memory>

#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/qp/controlled_flow.h"
#include "emulator/transport/qp/deferred_completions.h"
#include "emulator/transport/qp/known_paths.h"
#include "emulator/transport/qp/path_migration.h"
#include "emulator/transport/qp/tally.h"
#include "emulator/transport/qp/telemetry_exchange.h"
#include "emulator/wire/opcode.h"

namespace rocemu::transport {

// The parts of an endpoint that it gives to each of its QPs.
struct EndpointParts {
  Memory& memory;
  EventSink& events;
  DeferredCompletions& deferred;
  PortTally& tally;
  const TransportLimits& limits;
  KnownPaths& paths;
};

struct QpContext {
  Qp& qp;
  Memory& memory;
  EventSink& events;
  DeferredCompletions& deferred;
  const TransportLimits& limits;
  KnownPaths& paths;
  wire::Transport transport;  // the one that the QP's packets name
  wire::Qpn qpn;
  QpResources resources;
  QpTally tally;
  QpAttributes attributes{};
  QpState state = QpState::reset;
  bool paced = false;  // it has a rate, by which a window may take longer than the ACK timeout
  Landing landing{};   // that came with the packet that is being received
  PathMigration migration{};
  std::unique_ptr<ControlledFlow> flow{};           // null: no algorithm was chosen for the device
  std::unique_ptr<TelemetryEcho> telemetry_echo{};  // null: no request has brought telemetry

  // True when packets of a message may leave together: nobody wants to hear of each or to space
  // them out, and they go to one port.
  bool may_run() const {
    return flow == nullptr && !paced && limits.recovery == Recovery::go_back_n &&
           !is_multicast(attributes.path.remote_gid);
  }

  void set_state(QpState now) {
    state = now;
    if (Observer* const observer = tally.observer()) observer->on_state(qpn, now, attributes);
    tally.note(TraceEvent::state_changed, static_cast<uint32_t>(now));
  }
};

// Packets are received from RTR on, and no longer in ERROR.
inline bool receives(QpState state) {
  return state >= QpState::ready_to_receive && state <= QpState::send_queue_error;
}

// The result of a turn at sending.
enum class Turn : uint8_t {
  sent,       // a frame was added to the burst
  idle,       // nothing to send now
  later,      // nothing was sent, though there is more to do: at the next transmit call
  paced,      // the QP has to wait until its rate allows more
  no_buffer,  // the sink has no buffer: try again at the next transmit call
};

}  // namespace rocemu::transport
