#include "emulator/daemon/engine/pace/thread_priority.h"

#include <fcntl.h>
#include <linux/sched/types.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/unique_fd.h"

namespace rocemu::daemon {
namespace {

constexpr int kNice = -10;
constexpr char kNiceText[] = "-10";
constexpr unsigned long kTimerSlackNs = 1000;
constexpr unsigned kSliceNs = 100'000;

// A kernel that knows no slices takes the call and does nothing.
void ask_for_short_slice() {
  sched_attr attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  attributes.size = sizeof(attributes);
  attributes.sched_runtime = kSliceNs;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void raise_thread_priority() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
  ask_for_short_slice();
}

void raise_session_priority() {
  if (::getsid(0) != ::getpid()) return;
  const UniqueFd file(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
  if (!file) return;
  [[maybe_unused]] const ssize_t written = ::write(file.get(), kNiceText, std::strlen(kNiceText));
}

}  // namespace rocemu::daemon
