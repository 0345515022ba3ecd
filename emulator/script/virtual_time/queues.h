// The queues of a program in virtual time, as a device wants them.
#pragma once

#include <deque>
#include <vector>

#include "emulator/device/interface/host_interface.h"
#include "emulator/sim/sim_queues.h"

namespace rocemu::script {

struct Queues final : device::WorkQueues {
  explicit Queues(size_t send_depth) : depth(send_depth), sends(send_depth) {}
  transport::SendQueue& send() noexcept override { return sends; }
  transport::ReceiveQueue& receive() noexcept override { return receives; }
  void show_state(transport::QpState) noexcept override {}
  void reset() noexcept override {
    sends = sim::SimSendQueue(depth);
    receives = {};
  }

  size_t depth = 0;
  sim::SimSendQueue sends;
  sim::SimReceiveQueue receives;
};

// Receives of an SRQ.
struct SharedReceives final : device::ReceiveRing {
  bool pop(transport::ReceiveWork& work) noexcept override {
    if (!queue.pop(work)) return false;
    --posted;
    return true;
  }
  uint32_t waiting() const noexcept override { return posted; }
  bool take_over(device::ReceiveRing&) noexcept override { return false; }
  void post(sim::ReceiveRequest request) {
    queue.post(std::move(request));
    ++posted;
  }

  sim::SimReceiveQueue queue;
  uint32_t posted = 0;
};

// The part of a CQ that the program sees.
struct Shown {
  enum class Armed : uint8_t { no, solicited, any };
  std::deque<transport::Completion> completions;
  Armed armed = Armed::no;
  unsigned events = 0;
};

struct Completions final : device::CompletionRing {
  explicit Completions(Shown& to) : shown(to) {}
  bool push(const transport::Completion& completion) noexcept override {
    pushed.push_back(completion);
    return true;
  }
  bool show() noexcept override {
    bool wakes = false;
    for (const transport::Completion& completion : pushed) {
      wakes = wakes || shown.armed == Shown::Armed::any ||
              (shown.armed == Shown::Armed::solicited && completion.solicited);
      shown.completions.push_back(completion);
    }
    pushed.clear();
    return wakes;
  }
  bool take_arm() noexcept override {
    shown.armed = Shown::Armed::no;
    return true;
  }
  bool take_over(device::CompletionRing&) noexcept override { return false; }

  Shown& shown;
  std::vector<transport::Completion> pushed;
};

struct AsyncEvent {
  uint64_t element = 0;  // the object's user pointer
  uint32_t type = 0;
};

struct AsyncEvents final : device::EventChannel {
  explicit AsyncEvents(std::deque<AsyncEvent>& to) : events(to) {}
  bool completion_event(uint64_t) noexcept override { return true; }
  bool async_event(uint64_t element, uint32_t event_type) noexcept override {
    events.push_back({element, event_type});
    return true;
  }
  std::deque<AsyncEvent>& events;
};

// The channel of one CQ.
struct CompletionEvents final : device::EventChannel {
  explicit CompletionEvents(Shown& to) : shown(to) {}
  bool completion_event(uint64_t) noexcept override {
    ++shown.events;
    return true;
  }
  bool async_event(uint64_t, uint32_t) noexcept override { return true; }
  Shown& shown;
};

}  // namespace rocemu::script
