// An XRC domain: which SRQs the requests to its XRC_RECV QPs may name (IBTA vol 1, annex A14).
// Processes share one by way of a file (ibv_open_xrcd(3)); it lives as long as somebody has it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "emulator/device/objects.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::device {

struct Xrcd final : transport::XrcDomain {
  bool find(wire::Qpn number, transport::SharedReceiver& receiver) const noexcept override {
    const auto found = srqs.find(number.value);
    if (found == srqs.end()) return false;
    Srq& srq = *found->second;
    receiver = {srq.pd().id, &srq, srq.cq};
    return true;
  }

  std::optional<FileIdentity> file;  // none: nobody else can open it
  std::shared_ptr<void> file_hold;
  std::unordered_map<uint32_t, Srq*> srqs;
};

}  // namespace rocemu::device
