#include "emulator/device/hca_parts.h"

#include "emulator/device/memory/hca_memory.h"

namespace rocemu::device {

std::unique_ptr<transport::Memory> make_memory(MemoryRegions& regions) {
  return std::make_unique<HcaMemory>(regions);
}

std::unique_ptr<transport::Endpoint> make_endpoint(transport::Memory& memory,
                                                   transport::EventSink& events,
                                                   const transport::TransportLimits& limits,
                                                   uint32_t max_qps) {
  return std::make_unique<transport::Endpoint>(memory, events, limits, max_qps);
}

}  // namespace rocemu::device
