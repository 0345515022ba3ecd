// Qp is what all queue pairs have in common, whatever their service: number, state, resources, and
// the calls by which the endpoint reaches them.
#pragma once

#include <memory>
#include <optional>

#include "base/time.h"
#include "emulator/transport/interface/flow_report.h"
#include "emulator/transport/interface/wait.h"
#include "emulator/transport/qp/burst.h"
#include "emulator/transport/qp/pacer.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

// A congestion notification packet that is to be sent (IBTA vol 1, annex A17).
struct Cnp {
  wire::Qpn from{};
  Path path;  // its headers alone are used
  wire::Qpn to{};
  uint16_t pkey = wire::kDefaultPkey;
};

class Qp {
 public:
  virtual ~Qp() = default;
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  wire::Qpn qpn() const { return context_.qpn; }
  QpState state() const { return context_.state; }
  MigrationState migration_state() const { return context_.migration.state(); }
  uint8_t ack_timeout_code() const { return context_.attributes.timeout; }
  QpTally& tally() { return context_.tally; }
  // Null when the program has set no rate.
  Pacer* pacer() const { return pacer_.get(); }
  void limit_rate(const RateLimit& limit) {
    context_.paced = limit.rate_kbps != 0;
    pacer_ = limit.rate_kbps == 0 ? nullptr : std::make_unique<Pacer>(limit);
  }
  void use_send_queue(SendQueue& queue) { context_.resources.send_queue = &queue; }
  // Null unless the device has chosen an algorithm and the QP is connected.
  ControlledFlow* flow() const { return context_.flow.get(); }
  virtual bool draining() const = 0;
  virtual QpLoad load() const = 0;
  // For those who look at the NIC; of queues that the device knows it says nothing.
  WaitFacts wait_facts(TimeNs now) const;

  void modify(QpState state, const QpAttributes& attributes);
  // `packet` may be a run if takes_whole() says so; else its packets come one by one.
  virtual void on_packet(TimeNs now, const wire::Packet& packet) = 0;
  virtual bool takes_whole(const wire::Packet& /*run*/) const { return false; }
  // `answers_by`: as for Endpoint::on_timeout.
  virtual void on_timeout(TimeNs now, TimeNs answers_by) = 0;

  // Adds one frame to the burst.
  virtual Turn transmit(TimeNs now, Burst& burst) = 0;
  // Adds the ACKs and NAKs that are next to be sent.
  virtual void acknowledge(Burst&) {}
  // Tells a QP that asked for it (Burst::tell_when_sent) that the burst has left.
  virtual void on_burst_sent() {}
  virtual TimeNs deadline() const = 0;

  // Moves the QP to ERROR: everything outstanding completes with a flush error. A QP with a shared
  // receive queue leaves that as it is, and says when it has taken its last receive (IBTA vol 1,
  // 10.2.9.3).
  void enter_error();
  // Completes with a flush error what stands in the queues that do not work any more.
  // Precondition: state ERROR, or SQE for the send queue alone.
  // At most kFlushAtOnce of each queue, since a program makes queues as long as it likes; the rest
  // follows in later calls, by way of DeferredCompletions::flush_later().
  virtual void flush_posted() = 0;
  static constexpr uint32_t kFlushAtOnce = 128;

  // Tells that the path and the ACK timeout are now those of the alternate path.
  virtual void on_path_migrated() {}
  // Tells that payload for a frame from `psn` on could not be read.
  virtual void on_fetch_failed(Side side, wire::Psn psn) = 0;
  // Tells that data of the packet with `psn` could not be written. `announced`: the completion that
  // would have announced it has been turned into an error already.
  virtual void on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) = 0;

  // What comes with the packets that are received from now on.
  void bring_landing(const Landing& landing) { context_.landing = landing; }

  bool active = false;         // stands in the endpoint's list of QPs that may send (SendingTurns)
  uint32_t share_left = 0;     // weight that it may send before it stands in line there
  bool flushes_later = false;  // stands in the list of DeferredCompletions::flush_later()
  bool answering = false;      // stands in its list of QPs that may have to acknowledge

  // Precondition: flow() is not null.
  FlowReport report_flow(TimeNs now) const;
  // A congestion notification packet has come.
  void on_cnp(TimeNs now, const wire::Packet& packet);
  // The CNP that tells the sender of `packet` of congestion. Empty when that is not a QP whose
  // packets this one takes.
  std::optional<Cnp> notification_for(const wire::Packet& packet, uint8_t traffic_class) const;

 protected:
  Qp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
     const QpResources& resources);

  // The state has changed from `before`, not to ERROR. The attributes are the new ones.
  virtual void on_new_state(QpState before) = 0;
  virtual void add_facts(TimeNs, WaitFacts&) const {}
  // The program has changed attributes and kept the state.
  virtual void on_new_attributes(bool /*of_another_path*/) {}
  // Completes with a flush error what has been taken off the queues. Precondition: state ERROR.
  virtual void flush() = 0;

  QpContext context_;

 private:
  std::unique_ptr<Pacer> pacer_;
};

}  // namespace rocemu::transport
