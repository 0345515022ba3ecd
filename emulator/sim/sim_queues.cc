#include "emulator/sim/sim_queues.h"

#include <algorithm>
#include <cassert>

namespace rocemu::sim {

uint32_t total_bytes(const std::vector<transport::Sge>& sges) {
  uint32_t total = 0;
  for (const transport::Sge& sge : sges) total += sge.length_bytes;
  return total;
}

bool SimSendQueue::post(SendRequest request) {
  if (full()) return false;
  if (on_post) on_post(request);
  slots_.push_back(std::move(request));
  ++posted_;
  return true;
}

bool SimSendQueue::pop(transport::SendWork& work) noexcept {
  if (popped_ == slots_.size()) return false;
  const SendRequest& request = slots_[popped_++];
  work.wr_id = request.wr_id;
  work.opcode = request.opcode;
  work.signaled = request.signaled;
  work.solicited = request.solicited;
  work.fence = request.fence;
  work.fault = request.fault;
  work.immediate = request.immediate;
  work.remote_address = request.remote_address;
  work.rkey = wire::RKey{request.rkey};
  work.address_handle = request.address_handle;
  work.remote_qpn = request.remote_qpn;
  work.remote_qkey = request.remote_qkey;
  work.remote_srq = request.remote_srq;
  work.compare_add = request.compare_add;
  work.swap = request.swap;
  work.feth = request.feth;
  work.flush_bytes = request.flush_bytes;
  work.binding = request.binding;
  work.segmentation = {request.tso_headers, request.tso_segment_bytes};
  work.inline_payload = nullptr;
  work.inline_wqe_data = request.inline_wqe_data.empty() ? nullptr : request.inline_wqe_data.data();
  if (request.inline_payload) {
    // An empty vector has no address, but the request is inline all the same.
    static const std::byte kNothing{};
    work.inline_payload =
        request.inline_payload->empty() ? &kNothing : request.inline_payload->data();
    work.length_bytes = static_cast<uint32_t>(request.inline_payload->size());
    work.sges.assign({});
  } else {
    work.length_bytes = total_bytes(request.sges);
    work.sges.assign(request.sges);
  }
  return true;
}

void SimSendQueue::release(uint32_t count) noexcept {
  assert(count <= popped_);
  for (uint32_t i = 0; i < count; ++i) slots_.pop_front();
  popped_ -= count;
  released_ += count;
}

void SimCompletionQueue::push(const transport::Completion& completion) noexcept {
  const transport::InlineCqeData& data = completion.inline_data;
  if (data.length_bytes > 0)
    std::copy_n(data.bytes.begin(), data.length_bytes,
                memory->at(data.address, data.length_bytes).begin());
  completions.push_back(completion);
  if (on_push) on_push(completion);
}

bool SimReceiveQueue::pop(transport::ReceiveWork& work) noexcept {
  if (posted_.empty()) return false;
  const ReceiveRequest& request = posted_.front();
  work.wr_id = request.wr_id;
  work.fault = request.fault;
  work.length_bytes = total_bytes(request.sges);
  work.sges.assign(request.sges);
  posted_.pop_front();
  return true;
}

}  // namespace rocemu::sim
