// A simulated host that is a whole device: the HCA in the loop that the NIC's engine runs for it
// (daemon/engine/engine_device.h). Programs open contexts on it, their memory and queues being
// whoever plays them.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"
#include "emulator/device/hca.h"
#include "emulator/sim/polling_node.h"
#include "emulator/transport/answer_patience.h"

namespace rocemu::sim {

class HcaNode final : public PollingNode, private device::AddressResolver {
 public:
  // `parts` may put decorators into the device.
  HcaNode(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed,
          const device::HcaParts& parts = {});

  device::Hca& hca() { return hca_; }

  // A program rings; the loop turns soon.
  void ring(wire::Qpn qpn);

 protected:
  void turn(TimeNs now, std::span<const std::span<const std::byte>> frames,
            std::span<const transport::ReceivedRun> runs) override;
  TimeNs next_turn(TimeNs now) const override;

 private:
  // Any address of the network that the node's own is of; a frame to one that nobody has is lost.
  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override;

  mutable device::Hca hca_;
  transport::AnswerPatience patience_;
  bool events_wait_ = false;  // an event could not be written
};

}  // namespace rocemu::sim
