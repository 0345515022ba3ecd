#include "verbs_shim/checker/model/objects.h"

#include <errno.h>

#include "verbs_shim/checker/model/model.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {

std::string MemoryRegion::name() const {
  return "MR " + hex(address) + " (" + std::to_string(bytes) + " bytes, lkey " + hex(lkey) +
         ", rkey " + hex(rkey) + ")";
}

std::string CompletionQueue::name() const {
  return "CQ " + hex(reinterpret_cast<uintptr_t>(handle)) + " (" + std::to_string(entries) +
         " entries)";
}

void CompletionQueue::note_poll(pid_t thread) {
  const pid_t before = poller.load(std::memory_order_relaxed);
  if (before == thread) [[likely]] {
    // Programs poll in vain most of the time. Nobody else counts, so this needs no locked
    // instruction; when a second thread begins to, one of the two steps may get lost, not both.
    steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  if (before != kSeveral) poller.store(before == 0 ? thread : kSeveral, std::memory_order_relaxed);
  steps.fetch_add(1, std::memory_order_relaxed);
}

std::string SharedReceiveQueue::name() const {
  return "SRQ " + hex(reinterpret_cast<uintptr_t>(handle)) + " (" + std::to_string(max_wr) +
         " requests)";
}

void SharedReceiveQueue::forget_id(uint64_t wr_id) {
  const auto found = outstanding_ids.find(wr_id);
  if (found != outstanding_ids.end() && --found->second == 0) outstanding_ids.erase(found);
}

std::string QueuePair::name() const {
  return "QP " + qpn_text(number) + " (" + name_of(type) + ")";
}

bool QueuePair::may_send_again_after_errors() const {
  return type == IBV_QPT_UD || type == IBV_QPT_UC || type == IBV_QPT_RAW_PACKET;
}

bool QueuePair::may_be_answered(const Request& request) const {
  const bool is_reliable = type != IBV_QPT_UD && type != IBV_QPT_UC;
  return !is_reliable &&
         request.receives_before != context->model->receives_taken.load(std::memory_order_relaxed);
}

void QueuePair::lose_track(WorkQueue& queue) {
  queue.is_tracked = false;
  const auto& cq = &queue == &sends ? send_cq : recv_cq;
  if (cq != nullptr) cq->is_tracked = false;
}

std::string Context::name() const { return std::string("device ") + device_name; }

int Context::control(uint32_t op, void* request, size_t request_bytes, void* reply,
                     size_t reply_bytes) {
  if (gone) return ENODEV;
  return model->services.control(verbs(), op, request, request_bytes, reply, reply_bytes);
}

std::shared_ptr<QueuePair> Context::find_qp(uint32_t qpn) const {
  std::shared_lock lock(tables_lock);
  const auto found = qps.find(qpn);
  return found == qps.end() ? nullptr : found->second;
}

std::shared_ptr<MemoryRegion> Context::find_region(uint32_t lkey) const {
  std::shared_lock lock(tables_lock);
  const auto found = regions.find(lkey);
  return found == regions.end() ? nullptr : found->second;
}

}  // namespace rocemu::check
