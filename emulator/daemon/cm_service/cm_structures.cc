#include "emulator/daemon/cm_service/cm_structures.h"

#include <endian.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rocemu::daemon {
namespace {

constexpr uint16_t kAfInet = 2;
constexpr uint16_t kAfInet6 = 10;
constexpr uint8_t kPort = 1;
constexpr uint32_t kNoIndex = ~0u;  // libibverbs does not know device indices without netlink

// struct ib_user_path_rec
constexpr uint8_t kExactly = 2;  // IB_SA_EQ
constexpr uint8_t kRate100Gbps = 16;
constexpr uint8_t kPacketLifetime = 16;
constexpr uint8_t kHopLimit = 64;

// struct sockaddr_in; netinet/in.h and linux/in6.h do not go together.
struct Ipv4SocketAddress {
  uint16_t family;
  uint16_t port;
  uint8_t address[4];
  uint8_t zero[8];
};

void store_address(const std::optional<cm::SocketAddress>& from, sockaddr_in6& to) {
  if (!from) return;
  if (from->ipv6) {
    to.sin6_family = kAfInet6;
    to.sin6_port = htobe16(from->port);
    std::memcpy(&to.sin6_addr, from->ip.bytes.data(), 16);
    to.sin6_scope_id = from->scope_id;
    return;
  }
  Ipv4SocketAddress ipv4{kAfInet, htobe16(from->port), {}, {}};
  std::memcpy(ipv4.address, from->ip.bytes.data() + 12, 4);
  std::memcpy(&to, &ipv4, sizeof(ipv4));
}

void describe_path(const cm::RdmaCm& cm, const cm::RdmaId& id, ib_user_path_rec& path) {
  const wire::Gid& local = cm.interfaces().gid(*id.local_gid);
  std::copy(local.bytes.begin(), local.bytes.end(), path.sgid);
  if (id.destination)
    std::copy(id.destination->ip.bytes.begin(), id.destination->ip.bytes.end(), path.dgid);
  path.pkey = htobe16(wire::kDefaultPkey);
  path.reversible = 1;
  path.numb_path = 1;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  path.mtu = cm.interfaces().device(id.local_gid->device).active_mtu;
  path.rate = kRate100Gbps;
  path.packet_life_time = kPacketLifetime;
  path.hop_limit = kHopLimit;
  path.traffic_class = id.options.traffic_class;
}

ib_uverbs_ah_attr describe_address(const cm::AddressVector& address) {
  ib_uverbs_ah_attr ah{};
  std::copy(address.dgid.bytes.begin(), address.dgid.bytes.end(), ah.grh.dgid);
  ah.grh.flow_label = address.flow_label;
  ah.grh.sgid_index = address.sgid_index;
  ah.grh.hop_limit = address.hop_limit;
  ah.grh.traffic_class = address.traffic_class;
  ah.dlid = address.dlid;
  ah.is_global = 1;
  ah.port_num = kPort;
  return ah;
}

template <class Parameters>
void store_data(const cm::PrivateData& data, Parameters& to) {
  static_assert(sizeof(to.private_data) == cm::kMaxPrivateDataBytes);
  std::memcpy(to.private_data, data.bytes.data(), data.length);
  to.private_data_len = data.length;
}

void store_parameters(const cm::ConnectionParameters& from, rdma_ucm_conn_param& to) {
  store_data(from.data, to);
  to.qp_num = from.qpn;
  to.srq = from.srq ? 1 : 0;
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.flow_control = from.flow_control ? 1 : 0;
  to.retry_count = from.retry_count;
  to.rnr_retry_count = from.rnr_retry_count;
  to.valid = 1;
}

void store_parameters(const cm::DatagramParameters& from, rdma_ucm_ud_param& to) {
  store_data(from.data, to);
  to.qp_num = from.qpn;
  to.qkey = from.qkey;
  to.ah_attr = describe_address(from.address);
}

}  // namespace

std::optional<cm::SocketAddress> address_from(const sockaddr_in6& from) {
  cm::SocketAddress address;
  if (from.sin6_family == kAfInet6) {
    address.ipv6 = true;
    address.port = be16toh(from.sin6_port);
    std::memcpy(address.ip.bytes.data(), &from.sin6_addr, 16);
    address.scope_id = from.sin6_scope_id;
    return address;
  }
  if (from.sin6_family != kAfInet) return std::nullopt;
  Ipv4SocketAddress ipv4;
  std::memcpy(&ipv4, &from, sizeof(ipv4));
  address.port = be16toh(ipv4.port);
  address.ip.bytes[10] = address.ip.bytes[11] = 0xff;
  std::memcpy(address.ip.bytes.data() + 12, ipv4.address, 4);
  return address;
}

cm::PrivateData data_from(const uint8_t* bytes, uint8_t length) {
  cm::PrivateData data;
  data.length = length;
  std::memcpy(data.bytes.data(), bytes, length);
  return data;
}

cm::ConnectionParameters parameters_from(const rdma_ucm_conn_param& from) {
  cm::ConnectionParameters parameters;
  parameters.data = data_from(from.private_data, from.private_data_len);
  parameters.qpn = from.qp_num;
  parameters.srq = from.srq != 0;
  parameters.responder_resources = from.responder_resources;
  parameters.initiator_depth = from.initiator_depth;
  parameters.flow_control = from.flow_control != 0;
  parameters.retry_count = from.retry_count;
  parameters.rnr_retry_count = from.rnr_retry_count;
  return parameters;
}

rdma_ucm_query_route_resp describe_route(const cm::RdmaCm& cm, const cm::RdmaId& id) {
  rdma_ucm_query_route_resp route{};
  route.ibdev_index = kNoIndex;
  store_address(id.source, route.src_addr);
  store_address(id.destination, route.dst_addr);
  if (!id.local_gid) return route;
  route.node_guid = htobe64(cm.interfaces().device(id.local_gid->device).node_guid);
  route.port_num = kPort;
  describe_path(cm, id, route.ib_route[0]);
  const bool resolved = id.state == cm::IdState::route_resolved ||
                        id.state == cm::IdState::connecting ||
                        id.state == cm::IdState::disconnected;
  route.num_paths = resolved ? 1 : 0;
  return route;
}

ib_uverbs_qp_attr describe_setup(const cm::QpSetup& setup) {
  ib_uverbs_qp_attr attr{};
  attr.qp_attr_mask = setup.mask;
  attr.qp_state = setup.state;
  attr.path_mtu = setup.path_mtu;
  attr.qkey = setup.qkey;
  attr.rq_psn = setup.receive_psn;
  attr.sq_psn = setup.send_psn;
  attr.dest_qp_num = setup.destination_qpn;
  attr.qp_access_flags = setup.access_flags;
  attr.ah_attr = describe_address(setup.address);
  attr.max_rd_atomic = setup.max_rd_atomic;
  attr.max_dest_rd_atomic = setup.max_dest_rd_atomic;
  attr.min_rnr_timer = setup.min_rnr_timer;
  attr.port_num = kPort;
  attr.timeout = setup.timeout;
  attr.retry_cnt = setup.retry_count;
  attr.rnr_retry = setup.rnr_retry;
  return attr;
}

rdma_ucm_event_resp describe_event(const cm::RdmaEvent& event) {
  rdma_ucm_event_resp resp{};
  resp.uid = event.uid;
  resp.id = event.id;
  resp.event = static_cast<uint32_t>(event.type);
  resp.status = static_cast<uint32_t>(event.status);
  if (const auto* ud = std::get_if<cm::DatagramParameters>(&event.parameters)) {
    store_parameters(*ud, resp.param.ud);
  } else if (const auto* own = std::get_if<cm::UserArgument>(&event.parameters)) {
    std::memcpy(&resp.param, &own->value, sizeof(own->value));
  } else {
    store_parameters(std::get<cm::ConnectionParameters>(event.parameters), resp.param.conn);
  }
  return resp;
}

}  // namespace rocemu::daemon
