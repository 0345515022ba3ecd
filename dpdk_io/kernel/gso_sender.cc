#include "dpdk_io/kernel/gso_sender.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>

#include "dpdk_io/port/frame_pool.h"

namespace rocemu::dpdk_io {
namespace {

void count_sent(std::span<rte_mbuf* const> frames, PortStats& stats) {
  for (rte_mbuf* frame : frames) {
    ++stats.tx_frames;
    stats.tx_bytes += frame->pkt_len;
    FramePool::free(frame);
  }
}

void drop(std::span<rte_mbuf* const> frames, PortStats& stats) {
  stats.dropped(DropReason::refused_by_kernel) += frames.size();
  for (rte_mbuf* frame : frames) FramePool::free(frame);
}

}  // namespace

unsigned GsoSender::send(int fd, uint64_t now_ns, std::span<rte_mbuf* const> burst,
                         PortStats& stats) noexcept {
  burst = burst.first(std::min<size_t>(burst.size(), kBurst));
  const unsigned message_count = compose(burst);
  unsigned taken = 0;
  for (unsigned done = 0; done < message_count;) {
    const Outcome outcome = hand_over(fd, now_ns, done, message_count - done);
    for (unsigned i = 0; i < outcome.messages; ++i) {
      const unsigned frames = frames_[done++];
      count_sent(burst.subspan(taken, frames), stats);
      taken += frames;
    }
    if (outcome.verdict == Verdict::later) break;
    if (outcome.verdict == Verdict::sent) continue;
    const std::span batch = burst.subspan(taken, frames_[done]);
    // The kernel may refuse a batch for a reason that does not hold for its frames.
    if (batch.size() > 1 && outcome.error != ENOBUFS) {
      const unsigned alone = send_alone(fd, now_ns, done, taken, batch, stats);
      taken += alone;
      if (alone < batch.size()) break;
    } else {
      drop(batch, stats);
      taken += static_cast<unsigned>(batch.size());
    }
    ++done;
  }
  return taken;
}

unsigned GsoSender::compose(std::span<rte_mbuf* const> burst) noexcept {
  unsigned message_count = 0;
  for (unsigned first = 0; first < burst.size(); ++message_count) {
    const unsigned frames = composer_.batch_from(burst.subspan(first));
    compose(message_count, first, burst.subspan(first, frames));
    frames_[message_count] = frames;
    first += frames;
  }
  return message_count;
}

void GsoSender::compose(unsigned place, unsigned first_frame,
                        std::span<rte_mbuf* const> batch) noexcept {
  msghdr& message = messages_[place].msg_hdr;
  message = {};
  message.msg_iov = &parts_[kOwnParts * place + first_frame];
  composer_.compose(place, batch, message);
}

GsoSender::Outcome GsoSender::hand_over(int fd, uint64_t now_ns, unsigned place,
                                        unsigned count) noexcept {
  const int sent = send_messages_(fd, &messages_[place], count, MSG_DONTWAIT);
  if (sent >= 0) {
    obstructed_since_ns_ = kNever;
    obstructed_tries_ = 0;
    return {.messages = static_cast<unsigned>(sent)};
  }
  const int error = errno;
  bool later = error == EAGAIN || error == EINTR;
  if (error == ENOBUFS) {
    obstructed_since_ns_ = std::min(obstructed_since_ns_, now_ns);
    obstructed_tries_ = std::min(obstructed_tries_ + 1, kPatienceTries);
    later = now_ns - obstructed_since_ns_ < kPatienceNs || obstructed_tries_ < kPatienceTries;
  }
  return {.verdict = later ? Verdict::later : Verdict::refused, .error = error};
}

// Each frame takes the place of the batch's message.
unsigned GsoSender::send_alone(int fd, uint64_t now_ns, unsigned place, unsigned first_frame,
                               std::span<rte_mbuf* const> batch, PortStats& stats) noexcept {
  for (unsigned taken = 0; taken < batch.size(); ++taken) {
    const std::span frame = batch.subspan(taken, 1);
    compose(place, first_frame, frame);
    switch (hand_over(fd, now_ns, place, 1).verdict) {
      case Verdict::sent:
        count_sent(frame, stats);
        break;
      case Verdict::later:
        return taken;
      case Verdict::refused:
        drop(frame, stats);
        break;
    }
  }
  return static_cast<unsigned>(batch.size());
}

}  // namespace rocemu::dpdk_io
