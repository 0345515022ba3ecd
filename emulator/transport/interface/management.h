// The sink of datagrams for QP1, the general service interface (IBTA vol 1, 13.5.1): they are not
// the transport's business.
#pragma once

#include "emulator/wire/packet.h"

namespace rocemu::transport {

class ManagementSink {
 public:
  virtual ~ManagementSink() = default;
  // A whole packet with a MAD for a payload and the Q_Key of QP1; valid for the length of the call.
  virtual void on_mad(const wire::Packet& packet) noexcept = 0;
};

}  // namespace rocemu::transport
