// The multicast groups of a port and the QPs that are attached to each (IBTA vol 1, 10.5). The
// owner bounds their number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/wire/types.h"

namespace rocemu::transport {

class MulticastGroups {
 public:
  std::span<const wire::Qpn> members(const wire::Gid& group) const {
    const auto found = groups_.find(group);
    return found == groups_.end() ? std::span<const wire::Qpn>{} : found->second;
  }
  // A QP that is attached already stays so.
  void attach(const wire::Gid& group, wire::Qpn qpn) {
    std::vector<wire::Qpn>& members = groups_[group];
    if (std::find(members.begin(), members.end(), qpn) != members.end()) return;
    members.push_back(qpn);
    attachments_[qpn.value].push_back(group);
  }
  // False when it was not attached.
  bool detach(const wire::Gid& group, wire::Qpn qpn) {
    const auto found = groups_.find(group);
    if (found == groups_.end() || std::erase(found->second, qpn) == 0) return false;
    if (found->second.empty()) groups_.erase(found);
    const auto own = attachments_.find(qpn.value);
    std::erase(own->second, group);
    if (own->second.empty()) attachments_.erase(own);
    return true;
  }
  void detach_all(wire::Qpn qpn) {
    const auto own = attachments_.extract(qpn.value);
    if (own.empty()) return;
    for (const wire::Gid& group : own.mapped()) {
      const auto found = groups_.find(group);
      std::erase(found->second, qpn);
      if (found->second.empty()) groups_.erase(found);
    }
  }
  std::vector<wire::Gid> groups() const {
    std::vector<wire::Gid> all;
    for (const auto& [group, members] : groups_) all.push_back(group);
    return all;
  }
  size_t group_count() const { return groups_.size(); }
  size_t attachment_count(wire::Qpn qpn) const {
    const auto found = attachments_.find(qpn.value);
    return found == attachments_.end() ? 0 : found->second.size();
  }

 private:
  std::unordered_map<wire::Gid, std::vector<wire::Qpn>> groups_;
  std::unordered_map<uint32_t, std::vector<wire::Gid>> attachments_;  // by QPN: the QP's groups
};

}  // namespace rocemu::transport
