#include "emulator/daemon/control/connection/mailbox_poller.h"

#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/monotonic_clock.h"
#include "emulator/daemon/control/connection/program_connection.h"

namespace rocemu::daemon {
namespace {

// The time that a program takes between two calls that belong together.
constexpr TimeNs kSpanNs = 50'000;
// One turn without work of so many makes a system call.
constexpr unsigned kTurnsPerPoll = 8;

// With one core, a program gets on only when the NIC sleeps.
bool one_core() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) == 1;
}

}  // namespace

void MailboxPoller::run(boost::asio::io_context& io) {
  while (!io.stopped()) {
    try {
      serve(io);
    } catch (const std::exception& why) {  // without memory: the others' requests are served
      spdlog::error("a request is lost: {}", why.what());
    }
  }
  let_go();
}

void MailboxPoller::serve(boost::asio::io_context& io) {
  const TimeNs span_ns = one_core() ? 0 : kSpanNs;
  TimeNs last_ns = 0;
  unsigned turns = 0;
  bool handled = true;
  while (!io.stopped()) {
    if (kept_count_ == 0) {
      io.run_one();
      last_ns = monotonic_now_ns();
      continue;
    }
    const bool served = look();
    // Serving a request or handling an event may have posted something else.
    if (served || handled || ++turns % kTurnsPerPoll == 0) handled = io.poll() != 0;
    const TimeNs now_ns = monotonic_now_ns();
    if (served || handled)
      last_ns = now_ns;
    else if (now_ns - last_ns >= span_ns)
      let_go();
  }
}

void MailboxPoller::keep(std::shared_ptr<ProgramConnection> connection) {
  if (kept_count_ == kMax) {
    kept_.front()->wait();
    std::move(kept_.begin() + 1, kept_.end(), kept_.begin());
    --kept_count_;
  }
  // The connection is attended to only when the reply has left. A program that runs on sooner than
  // this thread has taken its core from it, and would look for a reply in vain.
  connection->set_attended(true);
  kept_[kept_count_++] = std::move(connection);
}

// A connection that is served may be answered at once, and then is kept anew.
bool MailboxPoller::look() {
  if (kept_count_ == 0) return false;
  const bool at_sockets = ++looks_ % kLooksPerSocket == 0;
  Kept before;
  std::swap(before, kept_);
  const size_t count = std::exchange(kept_count_, 0);
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    if (before[i]->look_at_mailbox() || (at_sockets && before[i]->look_at_socket()))
      any = true;
    else
      keep(std::move(before[i]));
  }
  return any;
}

// A request that comes in the very last moment is served, and its connection may be kept anew.
void MailboxPoller::let_go() {
  Kept before;
  std::swap(before, kept_);
  const size_t count = std::exchange(kept_count_, 0);
  for (size_t i = 0; i < count; ++i) {
    before[i]->set_attended(false);
    if (!before[i]->look_at_mailbox()) before[i]->wait();
  }
}

}  // namespace rocemu::daemon
