// Traces one device: its ring, its recorder, and the watches by which that hears of polls and of
// what the network loses. Belongs to the thread that has the device's turn.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk_io/port/linked_port.h"
#include "emulator/daemon/tracing/counter_samples.h"
#include "emulator/device/hca.h"
#include "emulator/device/interface/host_interface.h"
#include "emulator/trace/record/device_recorder.h"
#include "emulator/trace/record/ring.h"

namespace rocemu::daemon {

class DeviceTracer final : private device::PollWatch, private dpdk_io::LossWatch {
 public:
  // Finds the tracer of the device that has an address; null when there is none.
  using Find = std::function<DeviceTracer*(const wire::Gid&)>;

  // The device, its port and the host outlive it.
  DeviceTracer(uint16_t index, device::Hca& hca, dpdk_io::LinkedPort& port, size_t ring_records,
               trace::Ring::WhenFull when_full, const trace::Filter& filter,
               trace::RecorderHost& host, Find find);

  void attach();
  void detach();
  // A QP that is traced.
  void watch(wire::Qpn qpn);
  // Tells what has been polled, and whatever else has not been told yet.
  void tell_polled();

  // What has been counted since this was asked last.
  void sample_counters();

  // Empties a ring that forgets: what is known of QPs, and the last records.
  std::vector<trace::Record> take_last();

  uint16_t index() const { return index_; }
  trace::Ring& ring() { return ring_; }
  trace::DeviceRecorder& recorder() { return *recorder_; }

 private:
  uint32_t number_pushed() noexcept override { return recorder_->last_request(); }
  void on_polled(const transport::Completion& completion, uint32_t number,
                 TimeNs at_ns) noexcept override;
  void on_loss(const rte_mbuf* frame, dpdk_io::DropReason reason) noexcept override;
  void add_known_qps();

  const uint16_t index_;
  device::Hca& hca_;
  dpdk_io::LinkedPort& port_;
  trace::Ring ring_;
  trace::RecorderHost& host_;
  const Find find_;
  dpdk_io::LossWatch* next_watch_ = nullptr;  // is told as well
  std::unique_ptr<trace::DeviceRecorder> recorder_;
  CounterSamples counters_;
};

// Returns what a trace calls the reasons by which frames are lost.
std::vector<trace::Record> impairment_names();

}  // namespace rocemu::daemon
