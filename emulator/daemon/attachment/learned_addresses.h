// LearnedAddresses knows who has which GID beyond the in-process switch, as far as the control
// plane has found it out. A session tells the engine what it has found before it asks for the path.
#pragma once

#include <unordered_map>

#include "emulator/device/hca.h"

namespace rocemu::daemon {

// Only the engine thread uses it. Beyond kMax addresses all are forgotten, which costs those who
// come later another question, and nobody a connection.
class LearnedAddresses final : public device::AddressResolver {
 public:
  static constexpr size_t kMax = 65536;

  void learn(const wire::Gid& gid, const MacAddress& mac) {
    if (macs_.size() >= kMax) macs_.clear();
    macs_[gid] = mac;
  }

  bool resolve(const wire::Gid& gid, MacAddress& mac) noexcept override {
    const auto found = macs_.find(gid);
    if (found == macs_.end()) return false;
    mac = found->second;
    return true;
  }

 private:
  std::unordered_map<wire::Gid, MacAddress> macs_;
};

}  // namespace rocemu::daemon
