// An XRC domain holds the SRQs that requests to its XRC_RECV QPs may name (IBTA vol 1, annex A14).
// Processes share one by way of a file (ibv_open_xrcd(3)); it lives as long as somebody has it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "emulator/device/objects/objects.h"
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

// The domains of a device that have a file, and the numbers of the SRQs in all of its domains.
class XrcDomains {
 public:
  // Null when nobody has the domain of `file` open, or there is no file.
  std::shared_ptr<Xrcd> find(const std::optional<FileIdentity>& file) {
    std::erase_if(shared_, [](const auto& known) { return known.expired(); });
    if (!file) return nullptr;
    const auto found = std::ranges::find_if(
        shared_, [&](const auto& known) { return known.lock()->file == file; });
    return found == shared_.end() ? nullptr : found->lock();
  }

  std::shared_ptr<Xrcd> make(const XrcdSpec& spec) {
    auto domain = std::make_shared<Xrcd>();
    domain->file = spec.file;
    domain->file_hold = spec.file_hold;
    if (spec.file) shared_.push_back(domain);
    return domain;
  }

  // A number rests as long as it can before it is used again.
  wire::Qpn next_srq_number(const Xrcd& domain) {
    do {
      last_srq_number_ = (last_srq_number_ + 1) & wire::Psn::kMask;
    } while (last_srq_number_ == 0 || domain.srqs.contains(last_srq_number_));
    return wire::Qpn{last_srq_number_};
  }

 private:
  std::vector<std::weak_ptr<Xrcd>> shared_;
  uint32_t last_srq_number_ = 0;
};

}  // namespace rocemu::device
