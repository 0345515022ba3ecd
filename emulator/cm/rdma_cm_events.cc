// Turns what happens to connections into the events of librdmacm.
#include <algorithm>
#include <cerrno>

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/wire/cma_header.h"

namespace rocemu::cm {
namespace {

using Kind = ConnectionEvent::Kind;

template <size_t n>
PrivateData data_of(const std::array<std::byte, n>& bytes, size_t from = 0) {
  static_assert(n < kMaxPrivateDataBytes);
  PrivateData data;
  data.length = static_cast<uint8_t>(n - from);
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.end(), data.bytes.begin());
  return data;
}

uint8_t qp_type_of(const wire::CmReq& req) {
  switch (req.transport) {
    case wire::CmTransport::uc:
      return qp_type::kUc;
    case wire::CmTransport::extended:
      return qp_type::kXrcReceive;
    default:
      return qp_type::kRc;
  }
}

// A REQ and a REP say what their sender has; the program that hears of it is told what it may use.
template <class Message>
ConnectionParameters parameters_of(const Message& message, uint32_t qpn, size_t data_from = 0) {
  ConnectionParameters parameters;
  parameters.data = data_of(message.private_data, data_from);
  parameters.qpn = qpn;
  parameters.srq = message.srq;
  parameters.responder_resources = message.initiator_depth;
  parameters.initiator_depth = message.responder_resources;
  parameters.flow_control = message.end_to_end_flow_control;
  parameters.rnr_retry_count = message.rnr_retry_count;
  return parameters;
}

uint16_t port_of(uint64_t service_id) { return static_cast<uint16_t>(service_id); }

}  // namespace

void RdmaCm::on_mad(TimeNs now, const Route& route, std::span<const std::byte> mad) {
  if (!interfaces_.find(route.local, route.device)) return;
  connections_.on_mad(now, route, mad);
  deliver(now);
}

void RdmaCm::on_timeout(TimeNs now) {
  connections_.on_timeout(now);
  deliver(now);
}

void RdmaCm::deliver(TimeNs now) {
  ConnectionEvent event;
  while (connections_.next_event(event)) deliver(now, event);
}

void RdmaCm::deliver(TimeNs now, const ConnectionEvent& event) {
  if (event.kind == Kind::request)
    return on_request(now, event, std::get<wire::CmReq>(event.message).private_data);
  if (event.kind == Kind::sidr_request)
    return on_request(now, event, std::get<wire::CmSidrReq>(event.message).private_data);
  const auto found = by_connection_.find(event.id);
  if (found == by_connection_.end()) return;
  RdmaId& id = ids_.at(found->second);
  // A new connection's program is told of it by connect_request alone until it accepts; what the id
  // has become shows when it does.
  switch (event.kind) {
    case Kind::reply:
      return on_reply(id, std::get<wire::CmRep>(event.message));
    case Kind::ready:
      if (id.uid != 0) queue_about(id, EventType::established, 0, ConnectionParameters{});
      return;
    case Kind::rejected:
      return on_rejected(id, std::get<wire::CmRej>(event.message));
    case Kind::unreachable:
      if (id.uid == 0) return;
      if (id.datagram()) {
        queue_about(id, EventType::unreachable, -ETIMEDOUT, DatagramParameters{});
      } else {
        queue_about(id, EventType::unreachable, -ETIMEDOUT, ConnectionParameters{});
      }
      return;
    case Kind::disconnected:
      id.state = IdState::disconnected;
      if (id.uid != 0)
        queue_about(id, EventType::disconnected, event.timed_out ? -ETIMEDOUT : 0,
                    ConnectionParameters{});
      return;
    case Kind::timewait_over:
      if (id.uid != 0) queue_about(id, EventType::timewait_exit, 0, ConnectionParameters{});
      return;
    case Kind::sidr_reply:
      return on_sidr_reply(id, std::get<wire::CmSidrRep>(event.message));
    case Kind::request:
    case Kind::sidr_request:
      return;
  }
}

// The listener at exactly this address before one at any.
RdmaId* RdmaCm::listener_for(const Connection& connection, const SocketAddress& local,
                             uint8_t qp_type) {
  RdmaId* at_any = nullptr;
  const auto [first, last] = listeners_.at(connection.service_id);
  for (auto at = first; at != last; ++at) {
    RdmaId& id = ids_.at(at->second);
    if (id.qp_type != qp_type) continue;
    if (!id.source->is_any()) {
      // A link-local address may be that of several devices.
      const bool is_of_device =
          !local.ip.is_link_local_ipv6() || id.local_gid->device == connection.route.device;
      if (id.source->ip == local.ip && is_of_device) return &id;
    } else if (id.source->ipv6 == local.ipv6 || (id.source->ipv6 && !id.options.only_ipv6)) {
      at_any = &id;
    }
  }
  return at_any;
}

void RdmaCm::refuse_request(TimeNs now, const ConnectionEvent& event) {
  if (event.kind == Kind::request) {
    connections_.reject(now, event.id, wire::cm_reject::kInvalidServiceId, {});
    return connections_.abandon(now, event.id);
  }
  // Nothing is kept of a SIDR request: who asks again is told the same again.
  wire::CmSidrRep rep;
  rep.status = wire::cm_sidr::kUnsupported;
  connections_.answer_service(now, event.id, rep);
  connections_.ignore(event.id);
}

void RdmaCm::on_request(TimeNs now, const ConnectionEvent& event, std::span<const std::byte> data) {
  const Connection& connection = *connections_.find(event.id);
  const auto* const req = std::get_if<wire::CmReq>(&event.message);
  wire::CmaHeader header;
  const auto local_gid = interfaces_.find(connection.route.local, connection.route.device);
  // The addresses that the program is told of are those of the MAD: nobody asks for another.
  if (!wire::parse_cma_header(data, header) || !local_gid ||
      header.destination != connection.route.local || header.source != connection.route.remote)
    return refuse_request(now, event);
  if (req != nullptr && req->path_mtu > interfaces_.device(connection.route.device).active_mtu) {
    connections_.reject(now, event.id, wire::cm_reject::kInvalidMtu, {});
    return connections_.abandon(now, event.id);
  }
  const uint8_t type = req != nullptr ? qp_type_of(*req) : qp_type::kUd;
  const SocketAddress local{header.ipv6, header.destination, port_of(connection.service_id), 0};
  RdmaId* listener = listener_for(connection, local, type);
  if (listener == nullptr) {
    listeners_.refused(connection.service_id, header.source);
    return refuse_request(now, event);
  }
  listener->requests.clients.add(header.source);
  // Without room the request is forgotten as if it had not come: the peer asks again, and by then
  // there may be some.
  if (listener->requests.waiting >= listener->requests.limit || !may_connect(*listener))
    return connections_.ignore(event.id);
  const auto made = new_id(listener->channel, listener->port_space, listener->qp_type);
  if (!made) return connections_.ignore(event.id);
  RdmaId& id = **made;
  connections_.charge(event.id, program_of(id));
  id.state = IdState::connecting;
  id.seen = false;
  id.source = local;
  id.destination = SocketAddress{header.ipv6, header.source, header.source_port, 0};
  id.local_gid = local_gid;
  id.options.traffic_class = listener->options.traffic_class;
  id.options.ack_timeout = listener->options.ack_timeout;
  id.connection = event.id;
  by_connection_.emplace(event.id, id.handle);

  RdmaEvent request;
  request.type = EventType::connect_request;
  request.counted = listener->handle;
  request.id = id.handle;
  request.uid = listener->uid;
  if (req != nullptr) {
    ConnectionParameters parameters =
        parameters_of(*req, req->local_qpn.value, wire::kCmaHeaderBytes);
    parameters.retry_count = req->retry_count;
    request.parameters = parameters;
  } else {
    DatagramParameters parameters;
    parameters.data =
        data_of(std::get<wire::CmSidrReq>(event.message).private_data, wire::kCmaHeaderBytes);
    request.parameters = parameters;
  }
  if (!queue(std::move(request))) {
    by_connection_.erase(event.id);
    id.connection = 0;
    connections_.ignore(event.id);
    remove(now, id);
    return;
  }
  ++listener->requests.waiting;
}

void RdmaCm::on_reply(RdmaId& id, const wire::CmRep& rep) {
  const Connection& connection = *connections_.find(id.connection);
  queue_about(id, EventType::connect_response, 0,
              parameters_of(rep, connection.qp.remote_qpn.value));
}

void RdmaCm::on_rejected(RdmaId& id, const wire::CmRej& rej) {
  id.state = IdState::disconnected;
  if (id.uid == 0) return;
  ConnectionParameters parameters;
  parameters.data = data_of(rej.private_data);
  queue_about(id, EventType::rejected, rej.reason, parameters);
}

void RdmaCm::on_sidr_reply(RdmaId& id, const wire::CmSidrRep& rep) {
  DatagramParameters parameters;
  parameters.data = data_of(rep.private_data);
  if (rep.status != wire::cm_sidr::kValid) {
    queue_about(id, EventType::unreachable, rep.status, parameters);
    return;
  }
  parameters.qpn = rep.qpn.value;
  parameters.qkey = rep.qkey;
  parameters.address = address_to(id);
  queue_about(id, EventType::established, 0, parameters);
}

}  // namespace rocemu::cm
