// Answers what recorders ask of the NIC that they stand on. The engine thread asks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "emulator/daemon/engine/engine.h"
#include "emulator/device/attributes/device_config.h"
#include "emulator/device/hca.h"
#include "emulator/trace/format/record.h"
#include "emulator/trace/record/device_recorder.h"

namespace rocemu::daemon {

// The records of the names that are known from the beginning: devices with their addresses, rules
// by which packets are refused, reasons by which frames are lost, counters.
std::vector<trace::Record> names_of_nic(const std::vector<device::HcaConfig>& devices);

// kNoDevice: none has it.
uint16_t device_with_address(Engine& engine, const wire::Gid& gid);

// Returns the program whose QP it is; 0: nobody's that is known.
pid_t program_of(device::Hca& hca, wire::Qpn qpn);

// Returns the CQs and the SRQ of a QP, by the numbers that iproute2's `rdma` has for them.
trace::QpQueues queues_of_qp(device::Hca& hca, wire::Qpn qpn);

// Returns what is wrong with a key that a QP has refused.
trace::Cause why_refused(device::Hca& hca, wire::Qpn qpn, uint32_t key, uint64_t address,
                         uint32_t length_bytes);

}  // namespace rocemu::daemon
