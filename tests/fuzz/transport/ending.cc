// How each program of the transport target ends: nothing may be left, whatever went before.
#include "base/time.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/transport/world.h"

namespace rocemu::fuzz {

using transport::QpState;

namespace {

constexpr uint32_t kFrameLimit = 100'000;
constexpr uint32_t kTimeoutLimit = 1000;

}  // namespace

void World::end() {
  waiting_.clear();
  wire_carries_ = false;
  refusals_ = 0;
  for (const auto& qp : qps_)
    if (qp) ring(*qp);
  drain();
  let_timers_run_out();
  check();

  for (const auto& qp : qps_) {
    if (!qp) continue;
    ring(*qp);
    modify(*qp, QpState::error);
  }
  drain();
  check();
  for (uint32_t i = 0; i < kMaxQps; ++i)
    if (qps_[i]) destroy(i);
  expect(endpoint_.qp_count() == 0, "no QP is left");
  expect(!endpoint_.wants_transmit(), "without QPs there is nothing to send");
  expect(endpoint_.next_deadline() == kNever, "without QPs there are no timers");
}

void World::drain() {
  for (uint32_t frames = 0; endpoint_.wants_transmit(); frames += 64) {
    expect(frames < kFrameLimit, "without answers there is an end to sending");
    transmit(64);
  }
}

// Nothing is answered any more, so each request that was sent fails in the end.
void World::let_timers_run_out() {
  for (uint32_t i = 0; endpoint_.next_deadline() != kNever; ++i) {
    expect(i < kTimeoutLimit, "without answers there is an end to timeouts");
    now_ns_ = std::max(now_ns_, endpoint_.next_deadline());
    endpoint_.on_timeout(now_ns_);
    expect(endpoint_.next_deadline() > now_ns_, "what was due is over");
    drain();
  }
  for (const auto& qp : qps_)
    if (qp && endpoint_.state(qp->qpn) == QpState::ready_to_send &&
        (qp->attributes.timeout != 0 || qp->service == transport::Service::ud ||
         qp->service == transport::Service::uc))
      expect(qp->sends_done(), "no request waits for ever");
}

}  // namespace rocemu::fuzz
