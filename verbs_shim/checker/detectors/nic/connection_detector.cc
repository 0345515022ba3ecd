#include "verbs_shim/checker/detectors/nic/connection_detector.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

namespace rocemu::check {

namespace {

bool is_connected(const QueuePair& qp) {
  return qp.type == IBV_QPT_RC || qp.type == IBV_QPT_UC || qp.type == IBV_QPT_XRC_SEND ||
         qp.type == IBV_QPT_XRC_RECV;
}

// The NIC has said that it does not inspect.
std::atomic<bool> nobody_inspects = false;

}  // namespace

// All detectors of connections ask in the same event, so the answer is kept for the rest of it.
std::optional<rocemu_inspect_qp_reply> inspect(QueuePair& qp) {
  using Clock = std::chrono::steady_clock;
  struct Last {
    const QueuePair* qp = nullptr;
    Clock::time_point when;
    rocemu_inspect_qp_reply reply = {};
  };
  static thread_local Last last;
  constexpr std::chrono::milliseconds kOneEvent{1};
  if (!is_connected(qp) || nobody_inspects.load(std::memory_order_relaxed)) return std::nullopt;
  const Clock::time_point now = Clock::now();
  if (last.qp == &qp && last.reply.qp_num == qp.number && now - last.when < kOneEvent)
    return last.reply;
  rocemu_handle_message request = {};
  request.handle = qp.qp()->handle;
  last.qp = nullptr;
  const int error = qp.context->control(ROCEMU_OP_INSPECT_QP, request, last.reply);
  if (error == EOPNOTSUPP) nobody_inspects = true;
  if (error != 0) return std::nullopt;
  last.qp = &qp;
  last.when = now;
  return last.reply;
}

void ConnectionDetector::look(QueuePair& qp) {
  Connected connected;
  {
    auto& own = note_of(qp);
    std::lock_guard lock(own.lock);
    connected = own.connected;
  }
  if (connected.rtr_at == kNoPlace) return;
  const auto facts = inspect(qp);
  if (!facts) return;
  const auto finding = judge(qp, *facts);
  if (!finding) return;
  const PlaceId place = place_of(connected);
  if (!is_new(place)) return;
  report(place, "ibv_modify_qp", place == connected.rts_at ? connected.rts_by : connected.rtr_by,
         *finding);
}

void ConnectionDetector::on_modifying(const Call&, QueuePair& qp, const ibv_qp_attr& attr,
                                      int mask) {
  if ((mask & IBV_QP_STATE) == 0) return;
  if (attr.qp_state == IBV_QPS_RESET || attr.qp_state == IBV_QPS_ERR) look(qp);
}

void ConnectionDetector::on_modified(const Call& call, QueuePair& qp, const ibv_qp_attr& attr,
                                     int mask, ibv_qp_state, int error) {
  if (error != 0) return on_modify_refused(call, qp, attr, mask, error);
  if ((mask & IBV_QP_STATE) == 0) return;
  if (attr.qp_state == IBV_QPS_RESET) on_reset(qp);
  auto& own = note_of(qp);
  std::lock_guard lock(own.lock);
  Connected& connected = own.connected;
  if (attr.qp_state == IBV_QPS_RESET) {
    connected = {};
    own.looked_at_failure = false;
  } else if (attr.qp_state == IBV_QPS_RTR) {
    connected.rtr_at = call.place();
    connected.rtr_by = call.thread();
  } else if (attr.qp_state == IBV_QPS_RTS && connected.rts_at == kNoPlace) {
    connected.rts_at = call.place();
    connected.rts_by = call.thread();
  }
}

void ConnectionDetector::on_going(const Call&, Object& object) {
  if (object.kind == ROCEMU_CHECK_QP) look(static_cast<QueuePair&>(object));
}

void ConnectionDetector::on_failures_polled(const Call&, CompletionQueue& cq) {
  std::vector<std::shared_ptr<QueuePair>> failed;
  {
    std::shared_lock lock(cq.context->tables_lock);
    for (const auto& [qpn, qp] : cq.context->qps)
      if (qp->state == IBV_QPS_ERR && (qp->send_cq.get() == &cq || qp->recv_cq.get() == &cq))
        failed.push_back(qp);
  }
  for (const auto& qp : failed) {
    {
      auto& own = note_of(*qp);
      std::lock_guard lock(own.lock);
      if (std::exchange(own.looked_at_failure, true)) continue;
    }
    look(*qp);
  }
}

void ConnectionDetector::on_end(const Model& model) {
  for (const auto& object : model.all())
    if (object->kind == ROCEMU_CHECK_QP && !object->gone) look(static_cast<QueuePair&>(*object));
}

}  // namespace rocemu::check
