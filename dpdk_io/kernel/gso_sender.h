// GsoSender hands a burst of frames to a socket: GSO batches (gso_batch.h) as long as they can be,
// a message each, in as few calls as the kernel allows.
//
// Frames that the kernel refuses are dropped; those of a refused batch are first tried one by one.
// A full socket buffer (EAGAIN) only means later. So does ENOBUFS, which says that the queue of the
// interface is full, but also that a filter on the way out has dropped the frame. Nobody can tell
// the two apart, so ENOBUFS is believed for as long as a queue may take to move.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class GsoSender {
 public:
  static constexpr unsigned kBurst = 64;    // frames
  static constexpr unsigned kOwnParts = 2;  // parts of a message besides one for each frame
  // ENOBUFS is taken for a refusal when it has lasted this long, and for so many tries, as the
  // thread may have been kept from its core meanwhile.
  static constexpr uint64_t kPatienceNs = 10'000'000;
  static constexpr unsigned kPatienceTries = 100;

  // A composer makes messages of frames as one kind of socket wants them.
  class Composer {
   public:
    // Answers how many frames from the front of `burst`, which is not empty, may go as one batch.
    virtual unsigned batch_from(std::span<rte_mbuf* const> burst) const noexcept = 0;
    // Fills `message`, which is empty but for `msg_iov`: room for kOwnParts and a part for each
    // frame. `place`, below kBurst, is the message's own until it has been sent. May change the
    // identification of the frames.
    virtual void compose(unsigned place, std::span<rte_mbuf* const> batch,
                         msghdr& message) noexcept = 0;

   protected:
    ~Composer() = default;
  };

  // sendmmsg(2), for tests to put something in its place.
  using SendMessages = int (*)(int fd, mmsghdr* messages, unsigned count, int flags);

  // `composer` outlives the sender.
  explicit GsoSender(Composer& composer, SendMessages send_messages = ::sendmmsg)
      : composer_(composer), send_messages_(send_messages) {}

  // Takes frames from the front, kBurst at most, and returns how many; those that left and those
  // that are dropped are counted in `stats`. May change the identification of those that it does
  // not take.
  unsigned send(int fd, uint64_t now_ns, std::span<rte_mbuf* const> burst,
                PortStats& stats) noexcept;

 private:
  enum class Verdict { sent, later, refused };
  struct Outcome {
    Verdict verdict = Verdict::sent;
    unsigned messages = 0;  // sent
    int error = 0;
  };

  unsigned compose(std::span<rte_mbuf* const> burst) noexcept;
  void compose(unsigned place, unsigned first_frame, std::span<rte_mbuf* const> batch) noexcept;
  Outcome hand_over(int fd, uint64_t now_ns, unsigned place, unsigned count) noexcept;
  unsigned send_alone(int fd, uint64_t now_ns, unsigned place, unsigned first_frame,
                      std::span<rte_mbuf* const> batch, PortStats& stats) noexcept;

  Composer& composer_;
  SendMessages send_messages_;
  // ENOBUFS since the last message that left.
  uint64_t obstructed_since_ns_ = kNever;
  unsigned obstructed_tries_ = 0;
  std::array<mmsghdr, kBurst> messages_{};
  std::array<unsigned, kBurst> frames_{};  // number of frames in each message
  std::array<iovec, (kOwnParts + 1) * kBurst> parts_{};
};

}  // namespace rocemu::dpdk_io
