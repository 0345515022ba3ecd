// The inspection of all of a NIC's devices: what programs' checkers ask it. See README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/inspection/inspector.h"

namespace rocemu::inspection {

// A QP with its peer, since it was last reset.
struct QpReport {
  wire::Qpn qpn{};
  Meeting meeting{};
  Receives receives{};
  // The time for which the peer was asked to wait for a receive, as the RNR NAKs said: before the
  // first receive was taken, and in all.
  TimeNs waited_before_first_ns = 0;
  TimeNs waited_ns = 0;
  // The QP that would be there if the number that this one is connected to had its bytes swapped,
  // and none is there as it is; 0 otherwise.
  wire::Qpn swapped_peer{};
};

class Inspection {
 public:
  explicit Inspection(uint32_t devices);
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

  // The parts that the device is to be made of, with decorators before `parts`. This outlives the
  // device, which is told by watch() before it is used.
  device::HcaParts decorate(uint32_t device, device::HcaParts parts = {});
  void watch(uint32_t device, const device::Hca& hca);

  // ENOENT as the device says.
  device::Result<QpReport> describe_qp(uint32_t device, device::ContextId context,
                                       device::Handle qp) const;
  // False when no peer has ever written to these bytes by the context's regions.
  bool may_be_written(uint32_t device, device::ContextId context, uint64_t address,
                      uint64_t length_bytes) const;
  // Hands over the oldest findings for the program, at most so many.
  std::vector<Finding> take_findings(uint32_t device, device::ContextId context, size_t most);

 private:
  wire::Qpn find_swapped_peer(uint32_t device, wire::Qpn qpn) const;

  Clock clock_;
  Inspectors all_;
  std::vector<std::unique_ptr<Inspector>> inspectors_;
};

}  // namespace rocemu::inspection
