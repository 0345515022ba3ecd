// FaultAccess is what may be done to a device beside what programs ask of it: a QP or a CQ goes
// into error as if of itself, all programs are told of something, and taps (interface/taps.h) stand
// before queues and event pipes. Made for a fault injector, and for as long as a call of the engine
// thread; it keeps nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/device/interface/taps.h"

namespace rocemu::device {

struct QpBody;

// A QP as whoever looks for one knows it.
struct QpView {
  wire::Qpn qpn{};
  ContextId context = 0;  // the one that made it
  pid_t program = 0;      // 0: it cannot be seen from here
  bool sends = false;     // its requests have a queue
  bool connected = false;
  wire::Gid peer;  // only of a connected QP that has been told it
};

struct ContextView {
  ContextId id = 0;
  pid_t program = 0;
};

class FaultAccess {
 public:
  explicit FaultAccess(Hca& hca) : hca_(hca), impl_(*hca.impl_) {}

  std::vector<ContextView> contexts() const;
  std::vector<QpView> qps() const;
  std::optional<QpView> qp(wire::Qpn qpn) const;

  // Moves the QP to ERROR. The oldest request, posted or under way, completes with `status`, the
  // others are flushed. Without a request the program gets IBV_EVENT_QP_FATAL. False for a QP in
  // RESET or ERROR, which stays as it is.
  bool fail_qp(wire::Qpn qpn, transport::WcStatus status);
  // Moves the QP to ERROR; all requests are flushed, and nobody is told.
  void flush_qp(wire::Qpn qpn);
  // Both fail CQs as after an overrun: IBV_EVENT_CQ_ERR is sent, and the CQs' QPs go to ERROR. The
  // next publication does it.
  void fail_cqs_of_qp(wire::Qpn qpn);
  void fail_cqs_of_context(ContextId context);
  // Ends all completion channels, behind the events of what was flushed: who waits for one hears
  // that none will come.
  void close_channels(TimeNs now);
  // An event about the device or its port, to every program that has it open.
  void tell_all(uint32_t event_type);
  // An event about a QP or an SRQ that a tap held back. Nothing happens when the object is gone.
  void send_event(ContextId context, uint64_t element, uint32_t event_type);
  // The rate of a QP; nothing: that which its program set.
  void limit_rate(wire::Qpn qpn, std::optional<uint32_t> rate_kbps);

  // Each taps what has no tap yet.
  using TapRing =
      std::function<std::unique_ptr<CompletionRingTap>(std::unique_ptr<CompletionRing>)>;
  void tap_rings(const TapRing& tap);
  using TapSends = std::function<std::unique_ptr<SendQueueTap>(wire::Qpn, transport::SendQueue&)>;
  void tap_sends(const TapSends& tap);
  using TapEvents =
      std::function<std::unique_ptr<EventTap>(ContextId, std::unique_ptr<EventChannel>)>;
  void tap_events(const TapEvents& tap);
  void untap_rings();
  void untap_sends();
  void untap_events();
  // Has the next publication ask the rings' taps: what they held back may be due.
  void touch_rings();

 private:
  QpView view_of(const QpBody& body) const;

  Hca& hca_;
  Hca::Impl& impl_;
};

}  // namespace rocemu::device
