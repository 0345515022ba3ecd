#include "emulator/device/objects/tag_matcher.h"

#include <algorithm>
#include <utility>

namespace rocemu::device {

using transport::WorkOpcode;

void TagMatcher::reset() {
  for (size_t i = 0; i < reads_.size(); ++i) tags_.end_read();
  reads_.clear();
  waiting_.clear();
  sent_.clear();
}

void TagMatcher::read(const transport::ReceiveWork& buffer,
                      const transport::RendezvousHeader& offer,
                      std::span<const std::byte> headers) noexcept {
  auto reading = std::make_unique<Request>();
  transport::SendWork& work = reading->work;
  work.wr_id = next_id();
  work.opcode = WorkOpcode::read;
  work.signaled = true;
  work.remote_address = offer.address;
  work.rkey = offer.rkey;
  work.length_bytes = offer.length_bytes;
  work.sges.assign(buffer.sges.view());
  work.pd = pd_;
  reads_.emplace(work.wr_id, buffer.wr_id);
  tags_.begin_read();
  waiting_.push_back(std::move(reading));

  auto telling = std::make_unique<Request>();
  std::ranges::copy(headers, telling->message.begin());
  telling->message[0] = static_cast<std::byte>(verbs::TagOperation::finish);
  telling->work.wr_id = next_id();
  telling->work.fence = true;  // the peer may free its memory then
  telling->work.length_bytes = transport::kRendezvousBytes;
  telling->work.inline_payload = telling->message.data();
  waiting_.push_back(std::move(telling));
}

bool TagMatcher::pop(transport::SendWork& work) noexcept {
  if (waiting_.empty()) {
    if (!program_queue_.pop(work)) return false;
    work.pd = 0;  // `work` may have been one of these
    sent_.push_back(nullptr);
    return true;
  }
  std::unique_ptr<Request> request = std::move(waiting_.front());
  waiting_.pop_front();
  work = std::move(request->work);
  sent_.push_back(std::move(request));
  return true;
}

void TagMatcher::release(uint32_t count) noexcept {
  for (; count > 0 && !sent_.empty(); --count) {
    if (sent_.front() == nullptr) program_queue_.release(1);
    sent_.pop_front();
  }
}

void TagMatcher::push(const transport::Completion& completion) noexcept {
  const auto found = reads_.find(completion.wr_id);
  if (found == reads_.end()) {
    if (!is_own(completion.wr_id)) program_cq_.push(completion);
    return;
  }
  transport::Completion arrived = completion;
  arrived.wr_id = found->second;
  arrived.opcode = transport::WcOpcode::tm_receive;
  if (arrived.status == transport::WcStatus::success)
    arrived.tag_flags = verbs::wc_flag::kTmDataValid;
  reads_.erase(found);
  tags_.end_read();
  cq_.push(arrived);
}

}  // namespace rocemu::device
