// The layout of the rings of QPs, SRQs and CQs in their memfds (verbs_shim/abi/rings.h), and how
// much a program is granted when it asks for so much.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/device/attributes/device_config.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

struct RingLayout {
  uint32_t entries = 0;  // a power of two, or 0
  uint32_t granted = 0;  // entries that the program may use at a time
  uint32_t stride_bytes = 0;
  size_t offset_bytes = 0;
  uint32_t max_sge = 0;

  size_t size_bytes() const { return size_t{entries} * stride_bytes; }
};

struct QpLayout {
  RingLayout send;
  RingLayout receive;
  uint32_t max_inline_data = 0;
  uint32_t max_tso_header = 0;
  size_t memory_bytes = 0;
};

// Precondition: device::check_qp and check_cq have passed the request.
QpLayout lay_out_qp(const device::DeviceLimits& limits, const device::QpSpec& spec);

struct SrqLayout {
  RingLayout ring;
  size_t memory_bytes = 0;
};

// Precondition: device::check_srq has passed the request.
SrqLayout lay_out_srq(const device::DeviceLimits& limits, const device::SrqSpec& spec);

// The number of completions that a CQ holds which was asked to hold `cqe`, and the size of the
// memory of one that holds `entries`.
uint32_t cq_entries(const device::DeviceLimits& limits, uint32_t cqe);
size_t cq_memory_bytes(uint32_t entries);

}  // namespace rocemu::daemon
