#include "emulator/daemon/view/cm_ids.h"

#include <sys/socket.h>

#include <algorithm>

namespace rocemu::daemon {
namespace {

// enum rdma_cm_state of Linux (include/rdma/rdma_cm.h), which its netlink interface hands out.
uint32_t linux_state(cm::IdState state) {
  switch (state) {
    case cm::IdState::idle:
      return 0;
    case cm::IdState::address_resolved:
      return 2;
    case cm::IdState::route_resolved:
      return 4;
    case cm::IdState::connecting:
      return 5;
    case cm::IdState::disconnected:
      return 6;
    case cm::IdState::bound:
      return 7;
    case cm::IdState::listening:
      return 8;
    case cm::IdState::removed:
      return 9;
  }
  return 0;
}

rocemu_socket_address describe(const std::optional<cm::SocketAddress>& address) {
  rocemu_socket_address described{};
  if (!address) return described;
  std::ranges::copy(address->ip.bytes, described.ip);
  described.port = address->port;
  described.family = address->ipv6 ? AF_INET6 : AF_INET;
  return described;
}

// True where Linux would show the id: it knows none before it is on a device, and has one of its
// own on each device for who listens on all. What was on a device that is lost is on none.
bool is_on(const cm::RdmaId& id, uint32_t device) {
  if (id.state == cm::IdState::removed) return false;
  return id.local_gid ? id.local_gid->device == device : id.state == cm::IdState::listening;
}

rocemu_resource describe(const cm::RdmaCm& cm, const cm::RdmaId& id) {
  rocemu_resource described{};
  described.number = id.handle;
  described.pid = cm.process_of(id);
  described.type = id.qp_type;
  described.state = linux_state(id.state);
  described.port = id.local_gid ? 1 : 0;
  described.cm_id.port_space = id.port_space;
  const cm::Connection* const connection = cm.connections().find(id.connection);
  if (connection != nullptr) described.cm_id.local_qpn = connection->qp.local_qpn.value;
  described.cm_id.source = describe(id.source);
  described.cm_id.destination = describe(id.destination);
  return described;
}

}  // namespace

void list_cm_ids(const cm::RdmaCm& cm, uint32_t device, uint32_t from, rocemu_resources& reply) {
  for (auto at = cm.ids().lower_bound(from); at != cm.ids().end(); ++at) {
    if (!is_on(at->second, device)) continue;
    if (reply.count == ROCEMU_RESOURCES_MAX) {
      reply.more = 1;
      reply.next_place = at->first;
      return;
    }
    reply.resources[reply.count++] = describe(cm, at->second);
  }
}

uint32_t count_cm_ids(const cm::RdmaCm& cm, uint32_t device) {
  return static_cast<uint32_t>(
      std::ranges::count_if(cm.ids(), [&](const auto& id) { return is_on(id.second, device); }));
}

}  // namespace rocemu::daemon
