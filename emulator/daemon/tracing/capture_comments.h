// Tells a capture's file at once what the NIC knows of its frames: the records of a recorder on
// each device. Beside it the NIC may be traced.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk_io/port/linked_port.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/daemon/tracing/device_tracer.h"
#include "emulator/daemon/tracing/pcapng_file.h"
#include "emulator/daemon/tracing/traced_programs.h"

namespace rocemu::daemon {

class CaptureComments final : private trace::RecorderHost, private FrameKnowledge {
 public:
  // Before the engine starts. All outlive it. Port N is device N's.
  CaptureComments(PcapngFile& file, Engine& engine, const std::vector<device::HcaConfig>& devices,
                  const std::vector<dpdk_io::LinkedPort*>& ports);
  // Ends the engine, if nobody has done so: it would go on to tell this.
  ~CaptureComments() override;

 private:
  // trace::RecorderHost
  TimeNs now() noexcept override;
  trace::Owner owner_of(uint16_t device, wire::Qpn qpn) noexcept override;
  trace::QpQueues queues_of(uint16_t device, wire::Qpn qpn) noexcept override;
  uint16_t device_of(const wire::Gid& gid) noexcept override;
  trace::Cause explain_key(uint16_t device, wire::Qpn qpn, uint32_t key, uint64_t address,
                           uint32_t length_bytes) noexcept override;
  void on_half_full() noexcept override {}
  void on_failure(uint16_t, wire::Qpn) noexcept override {}

  // FrameKnowledge
  void tell(trace::CommentedFrames& frames) noexcept override;
  uint16_t device_of_address(const wire::Gid& gid) noexcept override { return device_of(gid); }

  PcapngFile& file_;
  Engine& engine_;
  TracedPrograms programs_;
  std::vector<trace::Record> names_;  // that have not been told
  std::vector<std::unique_ptr<DeviceTracer>> tracers_;
};

}  // namespace rocemu::daemon
