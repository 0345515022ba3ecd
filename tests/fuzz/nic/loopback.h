// The outside of a device whose frames come back to it: addresses and a wire.
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.h"
#include "emulator/device/hca.h"

namespace rocemu::fuzz {

class Loopback final : public device::AddressResolver, public transport::FrameSink {
 public:
  explicit Loopback(const device::PortConfig& port) : port_(port) {}

  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override;
  bool allocate(transport::FrameBuffer& buffer) noexcept override;
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override;
  void discard(const transport::FrameBuffer& buffer) noexcept override;

  // One turn of the engine: what was sent arrives, what is due happens, what can be sent leaves,
  // completions are shown.
  void turn(device::Hca& hca, TimeNs now_ns);
  bool carries_frames() const { return !frames_.empty(); }
  void lose_frames() { frames_.clear(); }

 private:
  device::PortConfig port_;
  std::vector<std::vector<std::byte>> frames_;
};

// A device with little of everything, so that limits are met.
device::HcaConfig small_device();

// Returns what takes a QP of this device to a state, with another QP of it as the peer.
device::QpAttr attributes_for(const device::HcaConfig& config, uint32_t peer_qpn);
inline constexpr uint32_t kToInit =
    device::kState | device::kPkeyIndex | device::kPort | device::kAccessFlags;
inline constexpr uint32_t kToReceive = device::kState | device::kAv | device::kPathMtu |
                                       device::kDestQpn | device::kRqPsn |
                                       device::kMaxDestRdAtomic | device::kMinRnrTimer;
inline constexpr uint32_t kToSend = device::kState | device::kTimeout | device::kRetryCount |
                                    device::kRnrRetry | device::kSqPsn | device::kMaxQpRdAtomic;

}  // namespace rocemu::fuzz
