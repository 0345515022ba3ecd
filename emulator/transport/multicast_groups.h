// The multicast groups of a port and the QPs that are attached to each (IBTA vol 1, 10.5). The
// owner bounds their number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
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
    ++attachments_[qpn.value];
  }
  // False when it was not attached.
  bool detach(const wire::Gid& group, wire::Qpn qpn) {
    const auto found = groups_.find(group);
    if (found == groups_.end() || std::erase(found->second, qpn) == 0) return false;
    if (found->second.empty()) groups_.erase(found);
    if (--attachments_[qpn.value] == 0) attachments_.erase(qpn.value);
    return true;
  }
  void detach_all(wire::Qpn qpn) {
    if (attachments_.erase(qpn.value) == 0) return;
    for (auto group = groups_.begin(); group != groups_.end();) {
      std::erase(group->second, qpn);
      group = group->second.empty() ? groups_.erase(group) : std::next(group);
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
    return found == attachments_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<wire::Gid, std::vector<wire::Qpn>> groups_;
  std::unordered_map<uint32_t, size_t> attachments_;  // by QPN, so that a QP goes without a search
};

}  // namespace rocemu::transport
