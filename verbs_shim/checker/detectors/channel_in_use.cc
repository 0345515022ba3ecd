// channel-in-use: an event channel of librdmacm is destroyed while another thread is in
// rdma_get_cm_event for it. A thread that was cancelled, or that an event has just woken, may be on
// its way out, so it gets a moment.
#include <time.h>

#include <map>

#include "verbs_shim/checker/detectors/makers.h"

namespace rocemu::check {
namespace {

constexpr int kPatience_ms = 100;

struct Waiter {
  int channel_fd = -1;
  PlaceId place = kNoPlace;
};

class ChannelInUse : public Detector {
 public:
  ChannelInUse() : Detector("channel-in-use", kNothing) {}

  void on_cm_waiting(const Call& call, int channel_fd) override {
    const Waiter waiter = {channel_fd, call.place()};
    std::lock_guard lock(lock_);
    waiters_[call.thread()] = waiter;
  }

  void on_cm_waited(int) override {
    std::lock_guard lock(lock_);
    waiters_.erase(this_thread());
  }

  void on_cm_channel_going(const Call& call, int channel_fd) override {
    pid_t thread = 0;
    Waiter waiter;
    for (int waited_ms = 0; is_waited_for(channel_fd, thread, waiter); ++waited_ms) {
      if (waited_ms == kPatience_ms) {
        if (is_new(call)) tell(call, thread, waiter);
        return;
      }
      const timespec millisecond = {0, 1'000'000};
      nanosleep(&millisecond, nullptr);
    }
  }

 private:
  bool is_waited_for(int channel_fd, pid_t& thread, Waiter& waiter) {
    std::lock_guard lock(lock_);
    for (const auto& [id, waits] : waiters_) {
      if (waits.channel_fd != channel_fd) continue;
      thread = id;
      waiter = waits;
      return true;
    }
    return false;
  }

  void tell(const Call& call, pid_t thread, const Waiter& waiter) {
    Finding finding;
    finding.sentence = "An event channel is destroyed while thread " + std::to_string(thread) +
                       " is in rdma_get_cm_event for it.";
    finding.why =
        "rdma_destroy_event_channel closes the descriptor and frees the channel, which the other "
        "thread reads again when it is woken. What close(2) does to a call that is under way in "
        "another thread is not said: Linux lets it wait on. A thread that is between two calls at "
        "that moment uses memory that is free, and finds a descriptor that is closed or another "
        "file's.";
    finding.advice =
        "End the thread first: cancel it, or have it woken by an event that it ends at, and "
        "join it (pthread_join(3)) before the channel is destroyed.";
    finding.related = {{"the other thread waits here", waiter.place, thread}};
    report(call, finding);
  }

  std::mutex lock_;
  std::map<pid_t, Waiter> waiters_;
};

}  // namespace

std::unique_ptr<Detector> make_channel_in_use() { return std::make_unique<ChannelInUse>(); }

}  // namespace rocemu::check
