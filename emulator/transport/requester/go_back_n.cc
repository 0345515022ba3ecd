#include "emulator/transport/requester/go_back_n.h"

#include "emulator/transport/qp/rc_tables.h"

namespace rocemu::transport {

void GoBackN::reset() {
  una_ = sent_end_;
  copy_.reset();
  implied_nak_taken_ = false;
  stop_timers();
}

void GoBackN::start() {
  una_ = sent_end_ = ack_asked_ = context_.attributes.send_psn;
  retries_left_ = retry_count_ = context_.attributes.retry_count;
  rnr_retries_left_ = rnr_retry_ = context_.attributes.rnr_retry;
}

// Another number of retries counts from now on, another timeout when the timer starts next. Packets
// that were sent without a timeout get one by being sent again, and those that have one lose it
// with the attribute.
void GoBackN::on_attributes_changed() {
  const uint8_t retry_count = context_.attributes.retry_count;
  const uint8_t rnr_retry = context_.attributes.rnr_retry;
  if (retry_count_ != retry_count) retries_left_ = retry_count_ = retry_count;
  if (rnr_retry_ != rnr_retry) rnr_retries_left_ = rnr_retry_ = rnr_retry;
  if (context_.attributes.timeout == 0) ack_deadline_ = kNever;
  if (context_.attributes.timeout != 0 && deadline() == kNever && una_ != sent_end_) seek(una_);
}

void GoBackN::on_progress(TimeNs now) {
  retries_left_ = context_.attributes.retry_count;
  rnr_retries_left_ = context_.attributes.rnr_retry;
  implied_nak_taken_ = false;
  copy_.reset();
  const bool rests = una_ == sent_end_ || waits_for_receiver() || context_.attributes.timeout == 0;
  ack_deadline_ = kNever;
  if (!rests) start_ack_timer(now);
}

bool GoBackN::take_implied_nak() {
  if (implied_nak_taken_ || waits_for_receiver()) return false;
  implied_nak_taken_ = true;
  return true;
}

bool GoBackN::retry() {
  if (retries_left_ == 0) return false;
  --retries_left_;
  ack_deadline_ = kNever;  // sending starts it anew
  copy_ = una_;
  copied_at_ = kNever;
  seek(una_);
  return true;
}

void GoBackN::begin_anew() {
  retries_left_ = context_.attributes.retry_count;
  implied_nak_taken_ = false;
  copy_.reset();
  ack_deadline_ = kNever;  // sending starts it anew
  seek(una_);
}

bool GoBackN::wait_for_receiver(TimeNs now, uint8_t timer_code) {
  if (context_.attributes.rnr_retry != 7) {
    if (rnr_retries_left_ == 0) return false;
    --rnr_retries_left_;
  }
  retries_left_ = context_.attributes.retry_count;
  copy_.reset();
  rnr_until_ = now + rnr_timer_ns(timer_code);
  ack_deadline_ = kNever;
  seek(una_);
  return true;
}

bool GoBackN::on_timeout(TimeNs now) {
  if (rnr_until_ <= now) rnr_until_ = kNever;
  if (ack_deadline_ > now) return false;
  implied_nak_taken_ = false;
  return true;
}

}  // namespace rocemu::transport
