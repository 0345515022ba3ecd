// IcrcCheck says whether a packet's ICRC is right, by what its port can know of the sender.
#pragma once

#include "base/time.h"
#include "emulator/transport/identification_history.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class IcrcCheck {
 public:
  // A frame without an Ethernet source came through a socket, without its IP header: there the
  // identification, which some senders count up, is unknown.
  bool right(TimeNs now, const wire::Packet& packet) {
    return packet.ethernet.source == MacAddress{}
               ? identifications_.is_right(now, packet.ip.source, packet.l3)
               : wire::icrc_matches(packet.l3);
  }

 private:
  IdentificationHistory identifications_;
};

}  // namespace rocemu::transport
