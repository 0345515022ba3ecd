// A QP of which only the send queue works: the stage for the requester's parts by themselves.
#pragma once

#include <memory>
#include <vector>

#include "emulator/sim/sim_queues.h"
#include "emulator/transport/qp/qp.h"

namespace rocemu::transport_test {

using namespace rocemu::transport;
using wire::Psn;

class SilentQp final : public Qp {
 public:
  SilentQp(const EndpointParts& parts, const QpResources& resources)
      : Qp(parts, wire::Transport::rc, wire::Qpn{17}, resources) {}

  QpContext& context() { return context_; }

  bool draining() const override { return false; }
  QpLoad load() const override { return {}; }
  void on_new_state(QpState) override {}
  void on_packet(TimeNs, const wire::Packet&) override {}
  void on_timeout(TimeNs, TimeNs) override {}
  Turn transmit(TimeNs, Burst&) override { return Turn::idle; }
  TimeNs deadline() const override { return kNever; }
  void flush_posted() override {}
  void on_fetch_failed(Side, Psn) override {}
  void on_scatter_failed(ScatterKind, Psn, bool) override {}

 private:
  void flush() override {}
};

// In RTS, with MTU 1024 and 100 for the first PSN.
class RequesterStage : EventSink {
 public:
  RequesterStage() {
    attributes.send_psn = Psn(100);
    attributes.max_rd_atomic = 4;
    attributes.timeout = 8;  // 1.05 ms
    attributes.retry_count = 2;
    attributes.rnr_retry = 1;
    modify(QpState::ready_to_send);
  }

  QpContext& context() { return qp_.context(); }
  void modify(QpState state) { qp_.modify(state, attributes); }

  // The wr_id of each is one more than that of the one before.
  void post(WorkOpcode opcode, uint32_t length_bytes, WcStatus fault = WcStatus::success) {
    send_queue.post({.wr_id = ++posted_,
                     .opcode = opcode,
                     .fault = fault,
                     .sges = {{0x1000, length_bytes, wire::LKey{1}}}});
  }
  const std::vector<Completion>& completions() {
    deferred_.flush(memory_);
    return send_cq.completions;
  }

  QpAttributes attributes;
  TransportLimits limits;
  sim::SimSendQueue send_queue{64};
  sim::SimCompletionQueue send_cq;
  std::vector<QpEvent> events;

 private:
  void on_qp_event(wire::Qpn, QpEvent event) noexcept override { events.push_back(event); }
  void on_qp_error(wire::Qpn) noexcept override {}

  sim::SimMemory memory_{0x1000};
  PortTally tally_;
  DeferredCompletions deferred_;
  KnownPaths paths_;
  SilentQp qp_{{memory_, *this, deferred_, tally_, limits, paths_},
               {.send_queue = &send_queue, .send_cq = &send_cq}};
  uint64_t posted_ = 0;
};

}  // namespace rocemu::transport_test
