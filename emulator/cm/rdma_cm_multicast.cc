// Multicast groups. A group's GID is its IP address; on the NIC's own network nobody has to be told
// of members, so that joining is over at once. A QP is attached to the group by verbs.
#include <cerrno>

#include "emulator/cm/rdma_cm.h"

namespace rocemu::cm {
namespace {

constexpr uint32_t kMulticastQpn = 0xffffff;
constexpr uint8_t kHopLimit = 1;  // as Linux has it for RoCE
constexpr uint16_t kMulticastLid = 0xc000;

}  // namespace

Result<GroupHandle> RdmaCm::join(OwnerId owner, IdHandle handle, uint64_t uid,
                                 const SocketAddress& group) {
  const auto named = usable(owner, handle);
  if (!named) return tl::unexpected(named.error());
  RdmaId* const id = *named;
  if (!id->datagram() || !id->local_gid || id->state == IdState::listening || !group.is_multicast())
    return tl::unexpected(EINVAL);
  if (groups_.size() >= limits_.max_groups || at_share(holdings(*id).groups, limits_.max_groups))
    return tl::unexpected(ENOMEM);
  do ++last_group_;
  while (groups_.contains(last_group_));
  groups_.emplace(last_group_, Group{handle, uid, 0});

  DatagramParameters parameters;
  parameters.qpn = kMulticastQpn;
  parameters.qkey = kDatagramQkey;
  parameters.address.dgid = group.ip;
  parameters.address.sgid_index = id->local_gid->gid_index;
  parameters.address.hop_limit = kHopLimit;
  parameters.address.traffic_class = id->options.traffic_class;
  parameters.address.dlid = kMulticastLid;
  RdmaEvent event;
  event.type = EventType::multicast_join;
  event.counted = event.id = handle;
  event.group = last_group_;
  event.uid = uid;
  event.parameters = parameters;
  if (!queue(std::move(event))) {
    groups_.erase(last_group_);
    return tl::unexpected(ENOMEM);
  }
  id->groups.insert(last_group_);
  ++holdings(*id).groups;
  return last_group_;
}

Result<EventTally> RdmaCm::leave(OwnerId owner, GroupHandle handle) {
  const auto group = groups_.find(handle);
  if (group == groups_.end()) return tl::unexpected(ENOENT);
  RdmaId* id = find(owner, group->second.id);
  if (id == nullptr) return tl::unexpected(ENOENT);
  const auto is_of_group = [&](const RdmaEvent& event) { return event.group == handle; };
  const EventTally tally{group->second.events_reported,
                         withdraw(channels_.at(id->channel), is_of_group).announced};
  id->groups.erase(handle);
  --holdings(*id).groups;
  groups_.erase(group);
  return tally;
}

}  // namespace rocemu::cm
