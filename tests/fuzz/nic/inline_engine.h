// An engine without a thread: what is posted runs at once, and comes back at once.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/daemon/control/session_host.h"

namespace rocemu::fuzz {

class InlineEngine final : public daemon::DeviceEngine {
 public:
  // The device outlives it.
  explicit InlineEngine(device::Hca& hca)
      : hca_(hca), page_("fuzz-engine", sizeof(rocemu_engine_page)) {}

  void post(daemon::Task work) override { work(); }
  void come_back(daemon::Task done) override { done(); }
  device::Hca& hca(uint32_t) override { return hca_; }
  daemon::EngineContext& add_context(std::unique_ptr<daemon::EngineContext> context) override {
    return *contexts_.emplace_back(std::move(context));
  }
  void close_context(daemon::EngineContext& context) override {
    std::erase_if(contexts_, [&](const auto& held) { return held.get() == &context; });
  }
  daemon::WakeSet& wake_set() override { return wake_set_; }
  int engine_page_fd() const override { return page_.fd(); }
  const daemon::EngineClock& clock() const override { return clock_; }
  daemon::CompletionHost& completion_host() override { return completion_host_; }

  void advance_to(TimeNs now_ns) { clock_.advance_to(now_ns); }
  daemon::EngineContext& newest_context() { return *contexts_.back(); }

 private:
  device::Hca& hca_;
  daemon::SharedMemory page_;
  daemon::WakeSet wake_set_;
  daemon::EngineClock clock_;
  daemon::CompletionHost completion_host_;
  std::vector<std::unique_ptr<daemon::EngineContext>> contexts_;
};

// The rest of a NIC that has no links and cannot be shut down.
class NoAdministration final : public daemon::NicAdministration {
 public:
  Report take_status() override {
    return [] { return std::string("{}"); };
  }
  Report take_metrics() override { return take_status(); }
  Report take_links() override { return take_status(); }
  bool has_links() const override { return false; }
  device::Result<Change> set_links(pid_t, const char*) override {
    return tl::unexpected(EOPNOTSUPP);
  }
  void shut_down() override {}
};

}  // namespace rocemu::fuzz
