// NicTracing traces the NIC: it sets a recorder before each device that is to be traced, has their
// records written to a file, and takes everything away again. One trace at a time.
//
// Belongs to the control thread, but for what recorders ask of it.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "dpdk_io/port/linked_port.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/tracing/device_tracer.h"
#include "emulator/daemon/tracing/trace_settings.h"
#include "emulator/daemon/tracing/trace_writer.h"
#include "emulator/daemon/tracing/traced_programs.h"

namespace rocemu::daemon {

struct TraceResult {
  uint64_t written_bytes = 0;
  uint64_t lost_records = 0;
  int error = 0;  // errno of a write that failed
};

class NicTracing final : private trace::RecorderHost {
 public:
  // All outlive it. Port N is device N's.
  NicTracing(boost::asio::io_context& io, Engine& engine,
             const std::vector<device::HcaConfig>& devices,
             const std::vector<dpdk_io::LinkedPort*>& ports);
  // The engine has ended: whatever still traces is written.
  ~NicTracing() override;

  // `file` is empty and open for writing. 0; EALREADY: there is a trace already, or it is just
  // ending; ENODEV: no such device; EBADF: it is no regular file, or not open for writing.
  int start(UniqueFd file, const TraceSettings& settings);
  // Calls `done` when the file is complete. ENOENT: there is no trace.
  int stop(std::function<void(const TraceResult&)> done);
  // The engine is about to end, and the io_context has.
  void detach_at_end();

  // A message of the connection manager leaves a device, or has come there.
  void on_mad(uint32_t device, const wire::Gid& peer, std::span<const std::byte> mad, bool sent);
  // A context of a program ends.
  void on_context_end(uint32_t device, pid_t program);

 private:
  struct Run;

  // trace::RecorderHost
  TimeNs now() noexcept override;
  trace::Owner owner_of(uint16_t device, wire::Qpn qpn) noexcept override;
  trace::QpQueues queues_of(uint16_t device, wire::Qpn qpn) noexcept override;
  uint16_t device_of(const wire::Gid& gid) noexcept override;
  trace::Cause explain_key(uint16_t device, wire::Qpn qpn, uint32_t key, uint64_t address,
                           uint32_t length_bytes) noexcept override;
  void on_half_full() noexcept override;
  void on_failure(uint16_t device, wire::Qpn qpn) noexcept override;

  std::vector<trace::Record> dictionary(const TraceSettings& settings) const;
  DeviceTracer* find(uint16_t device);
  void begin(Run& run);
  void detach(Run& run);
  void end(trace::Cause cause);
  void finished();
  void write_last();
  void follow();
  void on_control(std::function<void()> work);

  boost::asio::io_context& io_;
  Engine& engine_;
  const std::vector<device::HcaConfig>& devices_;
  const std::vector<dpdk_io::LinkedPort*>& ports_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<Run> run_;
  std::shared_ptr<NicTracing*> self_;  // held by what waits on the control thread
};

}  // namespace rocemu::daemon
