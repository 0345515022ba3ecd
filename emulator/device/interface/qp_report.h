// QpReport is what the device tells of a QP to those who look at the NIC from outside.
#pragma once

#include <sys/types.h>

#include "emulator/transport/interface/attributes.h"
#include "emulator/transport/interface/counters.h"
#include "emulator/transport/interface/wait.h"

namespace rocemu::device {

struct QpReport {
  wire::Qpn qpn{};
  transport::Service service = transport::Service::rc;
  transport::QpState state = transport::QpState::reset;
  wire::Qpn remote_qpn{};  // 0: it has no peer
  wire::Gid remote_gid{};  // the peer's address, where it has one
  pid_t program = 0;       // the process that holds it; 0: none does
  transport::QpLoad load;
  transport::Counters counters;  // since it was made
  transport::WaitFacts wait;
  transport::WaitReason waits_for = transport::WaitReason::none;
};

}  // namespace rocemu::device
