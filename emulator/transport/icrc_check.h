// IcrcCheck says whether a packet's ICRC is right, as far as a port's transport has to look.
#pragma once

#include "base/time.h"
#include "emulator/transport/identification_history.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

class IcrcCheck {
 public:
  // The port drops packets with a wrong ICRC: all are right from now on.
  void leave_to_port() { by_port_ = true; }

  // A frame without an Ethernet source came through a socket, without its IP header: there the
  // identification, which some senders count up, is unknown.
  bool right(TimeNs now, const wire::Packet& packet) {
    if (by_port_) return true;
    return packet.ethernet.source == MacAddress{}
               ? identifications_.is_right(now, packet.ip.source, packet.l3)
               : wire::icrc_matches(packet.l3);
  }

 private:
  bool by_port_ = false;
  IdentificationHistory identifications_;
};

}  // namespace rocemu::transport
