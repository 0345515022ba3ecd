#include "dpdk_io/kernel/gso_sender.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "dpdk_io/port/frame_pool.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kPoolFrames = 128;
constexpr int kFd = 7;

// The kernel's end: answers each call as a test has planned it, and everything is taken after that.
struct Kernel {
  std::deque<int> answers;                 // messages that are taken, or a negative errno
  std::vector<std::vector<size_t>> taken;  // the parts of each message

  int send(const mmsghdr* messages, unsigned count) {
    int answer = static_cast<int>(count);
    if (!answers.empty()) {
      answer = std::min(answers.front(), answer);
      answers.pop_front();
    }
    if (answer < 0) {
      errno = -answer;
      return -1;
    }
    for (const mmsghdr& message : std::span(messages, static_cast<size_t>(answer))) {
      std::vector<size_t> parts;
      for (size_t i = 0; i < message.msg_hdr.msg_iovlen; ++i)
        parts.push_back(message.msg_hdr.msg_iov[i].iov_len);
      taken.push_back(parts);
    }
    return answer;
  }
};
Kernel kernel;

int send_messages(int fd, mmsghdr* messages, unsigned count, int) {
  CHECK(fd == kFd);
  return kernel.send(messages, count);
}

// Frames whose first bytes are the same go as one; each is a part.
struct Sending : GsoSender::Composer {
  Sending() { kernel = {}; }
  virtual ~Sending() { CHECK(pool.available() == kPoolFrames); }

  unsigned batch_from(std::span<rte_mbuf* const> burst) const noexcept override {
    const auto flow = [](const rte_mbuf* frame) { return *rte_pktmbuf_mtod(frame, const char*); };
    const auto end = std::ranges::find_if(
        burst, [&](const rte_mbuf* frame) { return flow(frame) != flow(burst[0]); });
    return static_cast<unsigned>(end - burst.begin());
  }
  void compose(unsigned, std::span<rte_mbuf* const> batch, msghdr& message) noexcept override {
    for (rte_mbuf* frame : batch)
      message.msg_iov[message.msg_iovlen++] = {rte_pktmbuf_mtod(frame, char*), frame->data_len};
  }

  // Frames of 1, 2, 3 ... bytes; a letter is a flow.
  std::vector<rte_mbuf*> frames(const std::string& flows) {
    std::vector<rte_mbuf*> made;
    for (const char flow : flows) {
      made.push_back(pool.allocate());
      REQUIRE(made.back() != nullptr);
      const auto length = static_cast<uint16_t>(made.size());
      std::fill_n(rte_pktmbuf_append(made.back(), length), length, flow);
    }
    return made;
  }

  // How many are taken; frees the others.
  unsigned send(const std::string& flows) {
    std::vector<rte_mbuf*> burst = frames(flows);
    const unsigned taken = sender.send(kFd, now_ns, burst, stats);
    FramePool::free_bulk(std::span(burst).subspan(taken));
    return taken;
  }
  // Nothing is taken, so many times.
  void refuse(unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      kernel.answers = {-ENOBUFS};
      CHECK(send("a") == 0);
    }
  }
  uint64_t refused() const { return stats.dropped(DropReason::refused_by_kernel); }

  struct Started {
    Started() { need_eal(); }
  } started;
  FramePool pool{"sender", kPoolFrames, 256};
  uint64_t now_ns = 1'000'000;
  PortStats stats;
  GsoSender sender{*this, send_messages};
};

using Messages = std::vector<std::vector<size_t>>;

}  // namespace

TEST_CASE_METHOD(Sending, "a burst leaves in batches, and each frame is counted once") {
  CHECK(send("aabccc") == 6);
  CHECK(kernel.taken == Messages{{1, 2}, {3}, {4, 5, 6}});
  CHECK(stats.tx_frames == 6);
  CHECK(stats.tx_bytes == 21);
  CHECK(refused() == 0);
}

TEST_CASE_METHOD(Sending, "a burst has a bound") {
  CHECK(send(std::string(100, 'a')) == GsoSender::kBurst);
}

TEST_CASE_METHOD(Sending, "what a full socket does not take stays with the sender") {
  kernel.answers = {1, -EAGAIN};
  CHECK(send("aabb") == 2);
  kernel.answers = {-EAGAIN};
  CHECK(send("a") == 0);
  CHECK(refused() == 0);
}

TEST_CASE_METHOD(Sending, "what is refused is dropped, and not counted as sent") {
  kernel.answers = {1, -EMSGSIZE};
  CHECK(send("abc") == 3);
  CHECK(kernel.taken == Messages{{1}, {3}});
  CHECK(stats.tx_frames == 2);
  CHECK(stats.tx_bytes == 4);
  CHECK(refused() == 1);
}

TEST_CASE_METHOD(Sending, "of a batch that is refused each frame has its own chance") {
  kernel.answers = {1, -EINVAL, 1, -EMSGSIZE, 1, 1};
  CHECK(send("abbbc") == 5);
  CHECK(kernel.taken == Messages{{1}, {2}, {4}, {5}});
  CHECK(stats.tx_frames == 4);
  CHECK(refused() == 1);

  kernel = {};
  kernel.answers = {-EINVAL, 1, -EAGAIN};
  CHECK(send("aaab") == 1);
  CHECK(kernel.taken == Messages{{1}});
}

TEST_CASE_METHOD(Sending, "a full queue of the interface is waited for, but not for ever") {
  refuse(GsoSender::kPatienceTries);
  now_ns += GsoSender::kPatienceNs - 1;
  refuse(1);
  CHECK(refused() == 0);
  now_ns += 1;
  kernel.answers = {-ENOBUFS, -ENOBUFS};
  CHECK(send("ab") == 2);
  CHECK(refused() == 2);
  CHECK(stats.tx_frames == 0);

  // Once something has left, it is a queue again.
  CHECK(send("a") == 1);
  refuse(1);
  CHECK(refused() == 2);
}

TEST_CASE_METHOD(Sending, "a thread that was kept from its core tries again, too") {
  refuse(1);
  now_ns += 2 * GsoSender::kPatienceNs;
  refuse(GsoSender::kPatienceTries - 2);
  CHECK(refused() == 0);
  kernel.answers = {-ENOBUFS};
  CHECK(send("a") == 1);
  CHECK(refused() == 1);
}

TEST_CASE_METHOD(Sending, "a batch that a full queue refuses is not tried frame by frame") {
  refuse(GsoSender::kPatienceTries);
  now_ns += GsoSender::kPatienceNs;
  kernel.answers = {-ENOBUFS};
  CHECK(send("aaa") == 3);
  CHECK(refused() == 3);
  CHECK(kernel.taken.empty());
}

}  // namespace rocemu::dpdk_io
