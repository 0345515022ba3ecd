#include "tests/fuzz/transport/queue_pair.h"

#include <algorithm>
#include <utility>

#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

using transport::Completion;
using transport::WcOpcode;
using transport::WcStatus;

bool ReceiveQueue::post(transport::ReceiveWork work) {
  if (works_.size() == kReceiveDepth) return false;
  work.wr_id = posted_++;
  works_.push_back(std::move(work));
  return true;
}

bool ReceiveQueue::pop(transport::ReceiveWork& work) noexcept {
  if (works_.empty()) return false;
  work = std::move(works_.front());
  works_.pop_front();
  ++popped_;
  return true;
}

void ReceiveQueue::clear() {
  popped_ += works_.size();
  works_.clear();
}

void SharedReceives::on_completion(const Completion& completion) {
  expect(completion.wr_id < queue.popped(), "what completes was taken off the SRQ");
  expect(outstanding_.erase(completion.wr_id) == 1, "a receive of an SRQ completes once");
  expect(completion.status != WcStatus::success || completion.opcode != WcOpcode::receive ||
             completion.byte_length <= lengths_[completion.wr_id],
         "a message is no longer than its receive");
}

bool QueuePair::post_send(sim::SendRequest request) {
  request.wr_id = send_queue.posted();
  const Send send{request.wr_id, request.signaled};
  if (!send_queue.post(std::move(request))) return false;
  sends_.push_back(send);
  return true;
}

bool QueuePair::post_receive(transport::ReceiveWork work) {
  const Receive receive{receive_queue.posted(), work.length_bytes};
  if (!receive_queue.post(std::move(work))) return false;
  receives_.push_back(receive);
  return true;
}

void QueuePair::on_completion(const Completion& completion) {
  if (completion.opcode >= WcOpcode::receive) {
    on_receive_completion(completion);
  } else {
    on_send_completion(completion);
  }
}

void QueuePair::forgive_behind_error() {
  if (sends_.empty() || sends_.front().wr_id < resumed_at_) return;
  send_failed_ = false;
  resumed_at_ = UINT64_MAX;
}

void QueuePair::on_send_completion(const Completion& completion) {
  expect(completion.wr_id < send_queue.popped(), "what completes was taken off the send queue");
  while (!sends_.empty() && sends_.front().wr_id != completion.wr_id) {
    forgive_behind_error();
    expect(!sends_.front().signaled, "a signalled send completes before the next one");
    expect(!send_failed_, "behind a failed send each one completes");
    sends_.pop_front();
  }
  forgive_behind_error();
  expect(!sends_.empty(), "a send completes once");
  if (completion.status == WcStatus::success) {
    expect(sends_.front().signaled, "an unsignalled success is not told");
    expect(!send_failed_, "no send succeeds behind one that failed");
  } else {
    expect(!send_failed_ || completion.status == WcStatus::flush_error,
           "sends behind one that failed are flushed");
    send_failed_ = true;
  }
  sends_.pop_front();
}

void QueuePair::on_receive_completion(const Completion& completion) {
  expect(completion.wr_id < receive_queue.popped(), "what completes was taken off the queue");
  expect(!receives_.empty() && receives_.front().wr_id == completion.wr_id,
         "receives complete once and in order");
  if (completion.status == WcStatus::success) {
    expect(!receive_failed_, "no receive succeeds behind one that failed");
    expect(completion.opcode != WcOpcode::receive ||
               completion.byte_length <= receives_.front().length_bytes,
           "a message is no longer than its receive");
  } else {
    expect(!receive_failed_ || completion.status == WcStatus::flush_error,
           "receives behind one that failed are flushed");
    receive_failed_ = true;
  }
  receives_.pop_front();
}

void QueuePair::on_reset() {
  transport::SendWork ignored;
  while (send_queue.pop(ignored)) continue;
  send_queue.release(static_cast<uint32_t>(send_queue.popped() - send_queue.released()));
  receive_queue.clear();
  sends_.clear();
  receives_.clear();
  send_failed_ = receive_failed_ = false;
  resumed_at_ = UINT64_MAX;
  max_rd_atomic = max_dest_rd_atomic = 0;
  unrung = false;
}

void QueuePair::check_flushed() const {
  expect(send_queue.released() == send_queue.posted(), "in ERROR all sends are released");
  expect(std::ranges::none_of(sends_, &Send::signaled), "in ERROR all sends are complete");
  expect(receives_.empty(), "in ERROR all receives are complete");
}

bool QueuePair::sends_done() const {
  return send_queue.released() == send_queue.posted() &&
         std::ranges::none_of(sends_, &Send::signaled);
}

}  // namespace rocemu::fuzz
