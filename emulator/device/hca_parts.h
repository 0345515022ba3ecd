// The parts that stand between the device's tables and the wire, given from outside so that a
// decorator can stand before each of them: a checker, a fault injector, a slow NIC. The third such
// part, the transport::FrameSink, comes with every transport call (Hca::endpoint()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "emulator/device/interface/host_interface.h"
#include "emulator/device/memory/memory_regions.h"
#include "emulator/transport/endpoint.h"

namespace rocemu::device {

// Programs' memory behind the device's keys. `regions` outlives it.
std::unique_ptr<transport::Memory> make_memory(MemoryRegions& regions);

// The arguments are those of the endpoint's constructor: a decorator of the events stands before
// `events`.
std::unique_ptr<transport::Endpoint> make_endpoint(transport::Memory& memory,
                                                   transport::EventSink& events,
                                                   const transport::TransportLimits& limits,
                                                   uint32_t max_qps);

// Gives a QP other queues than those that the program posts to; as a rule some that stand before
// them. Empty: none are given.
using WorkQueueDecorator = std::function<std::unique_ptr<WorkQueues>(std::unique_ptr<WorkQueues>)>;

struct HcaParts {
  std::function<decltype(make_memory)> memory = make_memory;
  std::function<decltype(make_endpoint)> endpoint = make_endpoint;
  // When this is not 0, keys, QPNs and handles are drawn at random. All devices of a NIC have the
  // same, so that no handle is an object's on two of them.
  uint64_t number_seed = 0;
  WorkQueueDecorator queues{};
};

}  // namespace rocemu::device
