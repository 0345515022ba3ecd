// DPDK has had these functions unchanged since 18.11, and still calls them experimental.
#define ALLOW_EXPERIMENTAL_API
#include "dpdk_io/ethdev/removal_notice.h"

#include <rte_dev.h>
#include <sched.h>

#include <cerrno>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

// In DPDK's thread for interrupts.
void on_event(const char* /*device*/, rte_dev_event_type event, void* given) {
  if (event == RTE_DEV_EVENT_REMOVE)
    static_cast<std::atomic<bool>*>(given)->store(true, std::memory_order_release);
}

}  // namespace

RemovalNotice::RemovalNotice(std::string device) : device_(std::move(device)) {
  rte_dev_event_callback_register(device_.c_str(), on_event, &given_);
}

// Refused for as long as the callback runs.
RemovalNotice::~RemovalNotice() {
  while (rte_dev_event_callback_unregister(device_.c_str(), on_event, &given_) == -EAGAIN)
    ::sched_yield();
}

}  // namespace rocemu::dpdk_io
