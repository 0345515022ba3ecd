#include "emulator/daemon/rings/shared_completion_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/verbs/numbers.h"
#include "emulator/daemon/rings/shared_words.h"

namespace rocemu::daemon {
namespace {

// An answer is what a program can go on with: data from its peer. That a SEND or WRITE has arrived
// there, or has left, is none: it is mostly followed by the peer's answer.
bool is_answer(transport::WcOpcode opcode) {
  return opcode != transport::WcOpcode::send && opcode != transport::WcOpcode::rdma_write &&
         opcode != transport::WcOpcode::tso;
}

uint16_t wc_flags(const transport::Completion& completion) {
  if (completion.has_invalidated) return verbs::wc_flag::kWithInv;
  return static_cast<uint16_t>((completion.has_immediate ? verbs::wc_flag::kWithImm : 0) |
                               (completion.has_grh ? verbs::wc_flag::kGrh : 0));
}

}  // namespace

SharedCompletionRing::SharedCompletionRing(SharedMemory memory, uint32_t entries,
                                           CompletionHost& host)
    : memory_(std::move(memory)),
      header_(*reinterpret_cast<rocemu_cq_header*>(memory_.data())),
      ring_(memory_.data() + ROCEMU_CQ_RING_OFFSET),
      entries_(entries),
      mask_(std::bit_ceil(entries) - 1),
      host_(host) {}

// A consumer index that was never possible looks like a ring that is too full.
bool SharedCompletionRing::full() noexcept {
  if (producer_ - seen_consumer_ < entries_) return false;
  seen_consumer_ = load_acquire(header_.consumer);
  return producer_ - seen_consumer_ >= entries_;
}

bool SharedCompletionRing::push(const transport::Completion& completion) noexcept {
  if (full()) {
    store_release(header_.overrun, 1);
    return false;
  }
  if (watch_ != nullptr) [[unlikely]] {
    if (producer_ - told_ > mask_) tell_polled();
    numbers_[producer_ & mask_] = watch_->number_pushed();
  }
  rocemu_cqe cqe{};
  cqe.wr_id = completion.wr_id;
  cqe.qp_num = completion.qpn.value;
  cqe.status = static_cast<uint8_t>(completion.status);
  cqe.opcode = static_cast<uint8_t>(completion.opcode);
  cqe.wc_flags = wc_flags(completion);
  cqe.byte_length = completion.byte_length;
  cqe.imm_or_rkey = completion.immediate;
  cqe.src_qp = completion.source_qp.value;
  if (completion.has_flow_tag) {
    cqe.has_flow_tag = 1;
    cqe.src_qp = completion.flow_tag;
  }
  cqe.sl = completion.service_level;
  cqe.inline_bytes = static_cast<uint8_t>(completion.inline_data.length_bytes);
  if (cqe.inline_bytes > 0) {
    static_assert(sizeof(cqe.inline_data) == transport::InlineCqeData::kMaxBytes);
    cqe.inline_address = completion.inline_data.address;
    std::memcpy(cqe.inline_data, completion.inline_data.bytes.data(), sizeof(cqe.inline_data));
  }
  if (completion.tag_flags != 0) [[unlikely]] {
    cqe.wc_flags |= completion.tag_flags;
    cqe.inline_address = completion.tag();
  }
  std::memcpy(entry(producer_), &cqe, sizeof(cqe));
  ++producer_;
  answers_ = answers_ || is_answer(completion.opcode);
  wakes_solicited_ |= completion.solicited || completion.status != transport::WcStatus::success;
  return true;
}

bool SharedCompletionRing::show() noexcept {
  if (watch_ != nullptr) [[unlikely]]
    tell_polled();
  if (producer_ == published_) return false;
  const uint64_t completed_ns = host_.read_clock_ns();
  const uint32_t shown = producer_ - published_;
  for (; published_ != producer_; ++published_)
    std::memcpy(entry(published_) + offsetof(rocemu_cqe, timestamp_ns), &completed_ns,
                sizeof(completed_ns));
  const bool wakes_solicited = std::exchange(wakes_solicited_, false);

  // The program arms, or says that it sleeps, and then looks at `producer` once more.
  const bool slept = take_sleepers();
  store_seq_cst(header_.producer, producer_);
  const uint32_t arm = load_seq_cst(header_.arm);
  if (slept || load_seq_cst(header_.sleepers) != 0) [[unlikely]]
    wake_sleepers(shown);
  if (std::exchange(answers_, false)) host_.on_answer_for(load_acquire(header_.poller_core));
  return arm == ROCEMU_CQ_ARM_NEXT || (arm == ROCEMU_CQ_ARM_SOLICITED && wakes_solicited);
}

void SharedCompletionRing::watch_polls(device::PollWatch* watch) noexcept {
  watch_ = watch;
  told_ = producer_;
  if (watch != nullptr) numbers_.resize(size_t{mask_} + 1);
  store_release(header_.stamps_polls, watch != nullptr ? 1 : 0);
}

// What stands in the entries is the program's, who may have changed it: it is told as it is, but
// for times that cannot be.
void SharedCompletionRing::tell_polled() noexcept {
  if (watch_ == nullptr) return;
  const uint32_t consumer = load_acquire(header_.consumer);
  if (producer_ - consumer > mask_ + 1) return;
  const uint64_t now_ns = host_.read_clock_ns();
  for (; static_cast<int32_t>(consumer - told_) > 0; ++told_) {
    rocemu_cqe cqe;
    copy_out(cqe, entry(told_));
    if (cqe.dead != 0) continue;
    transport::Completion taken;
    taken.wr_id = cqe.wr_id;
    taken.qpn = wire::Qpn{cqe.qp_num & wire::Psn::kMask};
    taken.status = static_cast<transport::WcStatus>(cqe.status);
    taken.opcode = static_cast<transport::WcOpcode>(cqe.opcode);
    taken.byte_length = cqe.byte_length;
    watch_->on_polled(taken, numbers_[told_ & mask_],
                      cqe.timestamp_ns <= now_ns ? cqe.timestamp_ns : 0);
  }
}

// Before the producer index is shown: who says after it that it sleeps over the new one is not
// woken by this one, and stays.
bool SharedCompletionRing::take_sleepers() noexcept {
  return load_acquire(header_.sleepers) != 0 &&
         __atomic_exchange_n(&header_.sleepers, uint32_t{0}, __ATOMIC_SEQ_CST) != 0;
}

// The program decides how many of its threads sleep, and the time that waking them takes is the
// NIC's, so there is a bound.
void SharedCompletionRing::wake_sleepers(uint32_t completions) noexcept {
  constexpr uint32_t kMaxWoken = 16;
  const auto wanted = static_cast<long>(std::min(completions, kMaxWoken));
  const long woken =
      ::syscall(SYS_futex, &header_.producer, FUTEX_WAKE, wanted, nullptr, nullptr, 0);
  if (woken == wanted) store_seq_cst(header_.sleepers, 1);
}

bool SharedCompletionRing::take_arm() noexcept {
  return __atomic_exchange_n(&header_.arm, uint32_t{ROCEMU_CQ_UNARMED}, __ATOMIC_SEQ_CST) !=
         ROCEMU_CQ_UNARMED;
}

// No more than fit, whatever the program says it has taken.
uint32_t SharedCompletionRing::unread() const noexcept {
  return std::min(published_ - load_acquire(header_.consumer), entries_);
}

void SharedCompletionRing::take(const SharedCompletionRing& old, uint32_t count) noexcept {
  for (uint32_t i = 0; i < count; ++i, ++taken_)
    std::memcpy(entry(taken_), old.entry(taken_from_ + taken_), sizeof(rocemu_cqe));
}

// So much takes some 100 us, with the page faults of a ring that is new.
bool SharedCompletionRing::prepare_to_take_over(device::CompletionRing& old_ring) noexcept {
  constexpr uint32_t kAtOnce = 1024;
  const auto& old = static_cast<const SharedCompletionRing&>(old_ring);
  if (taken_ == 0) taken_from_ = load_acquire(old.header_.consumer);
  const uint32_t unread = old.producer_ - taken_from_;
  // An old ring that cannot be taken over is refused by take_over().
  if (unread > entries_ || unread > old.entries_ || unread - taken_ <= kAtOnce) return true;
  take(old, kAtOnce);
  return false;
}

bool SharedCompletionRing::take_over(device::CompletionRing& old_ring) noexcept {
  auto& old = static_cast<SharedCompletionRing&>(old_ring);
  const uint32_t consumer = load_acquire(old.header_.consumer);
  const uint32_t unread = old.producer_ - consumer;
  // More than the old ring holds is a program's lie about its consumer index. While a CQ is
  // resized, libibverbs' providers let nobody poll it.
  if (unread > entries_ || unread > old.entries_ || (taken_ > 0 && consumer != taken_from_))
    return false;
  taken_from_ = consumer;
  take(old, unread - taken_);
  producer_ = published_ = unread;
  store_seq_cst(header_.producer, unread);
  const uint32_t arm = __atomic_exchange_n(&old.header_.arm, uint32_t{0}, __ATOMIC_SEQ_CST);
  store_seq_cst(header_.arm, arm);
  return true;
}

}  // namespace rocemu::daemon
