// A QP's service and state, as scripts read them.
#pragma once

#include <string_view>

#include "emulator/transport/interface/attributes.h"

namespace rocemu::daemon {

constexpr std::string_view text(transport::Service service) {
  constexpr std::string_view kNames[] = {"RC", "UC", "UD", "XRC_SEND", "XRC_RECV", "RAW_PACKET"};
  return kNames[static_cast<size_t>(service)];
}

constexpr std::string_view text(transport::QpState state) {
  constexpr std::string_view kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace rocemu::daemon
