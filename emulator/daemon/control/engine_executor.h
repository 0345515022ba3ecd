// The engine as sessions of rocemud see it: Engine, and Boost.Asio for the way back.
#pragma once

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>

#include "emulator/daemon/control/session_host.h"
#include "emulator/daemon/engine/engine.h"

namespace rocemu::daemon {

class EngineExecutor final : public DeviceEngine {
 public:
  // Both outlive it.
  EngineExecutor(boost::asio::io_context& io, Engine& engine) : io_(io), engine_(engine) {}

  void post(Task work) override { engine_.post(std::move(work)); }
  void come_back(Task done) override { boost::asio::dispatch(io_, std::move(done)); }
  device::Hca& hca(uint32_t device) override { return engine_.hca(device); }
  EngineContext& add_context(std::unique_ptr<EngineContext> context) override {
    return engine_.add_context(std::move(context));
  }
  void close_context(EngineContext& context) override { engine_.close_context(context); }
  WakeSet& wake_set() override { return engine_.wake_set(); }
  int engine_page_fd() const override { return engine_.engine_page_fd(); }
  const EngineClock& clock() const override { return engine_.clock(); }
  CompletionHost& completion_host() override { return engine_.completion_host(); }

 private:
  boost::asio::io_context& io_;
  Engine& engine_;
};

}  // namespace rocemu::daemon
