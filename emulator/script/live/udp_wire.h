// The script's end of a live wire: RoCE v2 frames over a UDP socket of the kernel. The kernel makes
// and takes off the IP headers; those of what comes are made up again, so that a frame is compared
// as in virtual time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/net/ip_address.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace rocemu::script {

class UdpWire {
 public:
  // Binds UDP port 4791 of `own`. Throws std::system_error.
  UdpWire(const IpAddress& own, const IpAddress& peer);

  // Sends the part of a frame that is behind its UDP header, with the frame's traffic class.
  void send(std::span<const std::byte> frame);
  // Returns the next datagram of the peer, as a frame; empty: nothing is there.
  std::optional<std::vector<std::byte>> receive();
  // Waits until something may have come, and `wait_ns` at most.
  void wait(TimeNs wait_ns);

 private:
  std::vector<std::byte> frame_of(std::span<const std::byte> after_udp, uint8_t traffic_class,
                                  uint16_t source_port) const;

  IpAddress own_;
  IpAddress peer_;
  UniqueFd fd_;
};

}  // namespace rocemu::script
