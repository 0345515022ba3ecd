// connect, accept, reject and disconnect: from librdmacm's parameters to messages.
#include <algorithm>
#include <cerrno>

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/wire/cma_header.h"

namespace rocemu::cm {
namespace {

constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kMaxCount = 7;  // retry counts have three bits

// The private data of a request: the header of RDMA IP CM (annex A11) and the program's own bytes.
// `source` is that of the MAD, which the peer compares.
template <size_t n>
bool fill_request(const RdmaId& id, const wire::Gid& source, const PrivateData& data,
                  std::array<std::byte, n>& out) {
  if (data.length > n - wire::kCmaHeaderBytes) return false;
  wire::build_cma_header({id.source->ipv6, id.source->port, source, id.destination->ip}, out);
  std::copy_n(data.bytes.begin(), data.length, out.begin() + wire::kCmaHeaderBytes);
  return true;
}

template <size_t n>
bool fill_answer(const PrivateData& data, std::array<std::byte, n>& out) {
  if (data.length > n) return false;
  std::copy_n(data.bytes.begin(), data.length, out.begin());
  return true;
}

wire::CmTransport transport_of(uint8_t type) {
  switch (type) {
    case qp_type::kUc:
      return wire::CmTransport::uc;
    case qp_type::kXrcSend:
    case qp_type::kXrcReceive:
      return wire::CmTransport::extended;
    default:
      return wire::CmTransport::rc;
  }
}

}  // namespace

int RdmaCm::connect(TimeNs now, OwnerId owner, IdHandle handle,
                    const ConnectionParameters& parameters) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->state != IdState::route_resolved) return EINVAL;
  const int error = id->datagram() ? connect_datagram(now, *id, parameters)
                                   : connect_stream(now, *id, parameters);
  deliver(now);
  return error;
}

int RdmaCm::connect_stream(TimeNs now, RdmaId& id, const ConnectionParameters& parameters) {
  const Interface& device = interfaces_.device(id.local_gid->device);
  wire::CmReq req;
  const wire::Gid& source = interfaces_.gid(*id.local_gid);
  if (!fill_request(id, source, parameters.data, req.private_data)) return EINVAL;
  req.service_id = wire::ip_cm_service_id(id.port_space, id.destination->port);
  req.local_ca_guid = device.node_guid;
  req.local_qpn.value = parameters.qpn & wire::Psn::kMask;
  req.responder_resources = parameters.responder_resources;
  req.initiator_depth = parameters.initiator_depth;
  req.transport = transport_of(id.qp_type);
  req.extended_transport = req.transport == wire::CmTransport::extended ? 1 : 0;
  req.end_to_end_flow_control = parameters.flow_control;
  req.retry_count = std::min(parameters.retry_count, kMaxCount);
  req.rnr_retry_count = std::min(parameters.rnr_retry_count, kMaxCount);
  req.srq = parameters.srq;
  req.pkey = wire::kDefaultPkey;
  req.path_mtu = device.active_mtu;
  req.primary.traffic_class = id.options.traffic_class;
  req.primary.hop_limit = kHopLimit;
  req.primary.local_ack_timeout = id.options.ack_timeout.value_or(0);
  if (!may_connect(id)) return ENOMEM;
  const auto connection =
      connections_.connect(now, {id.local_gid->device, source, id.destination->ip}, req);
  if (!connection) return ENOMEM;
  connections_.charge(*connection, program_of(id));
  id.connection = *connection;
  id.state = IdState::connecting;
  by_connection_.emplace(*connection, id.handle);
  return 0;
}

int RdmaCm::connect_datagram(TimeNs now, RdmaId& id, const ConnectionParameters& parameters) {
  wire::CmSidrReq req;
  const wire::Gid& source = interfaces_.gid(*id.local_gid);
  if (!fill_request(id, source, parameters.data, req.private_data)) return EINVAL;
  req.service_id = wire::ip_cm_service_id(id.port_space, id.destination->port);
  req.pkey = wire::kDefaultPkey;
  if (!may_connect(id)) return ENOMEM;
  const auto connection =
      connections_.ask_service(now, {id.local_gid->device, source, id.destination->ip}, req);
  if (!connection) return ENOMEM;
  connections_.charge(*connection, program_of(id));
  id.connection = *connection;
  id.state = IdState::connecting;
  by_connection_.emplace(*connection, id.handle);
  return 0;
}

int RdmaCm::accept(TimeNs now, OwnerId owner, IdHandle handle, uint64_t uid,
                   const ConnectionParameters* parameters) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->state != IdState::connecting || id->connection == 0) return EINVAL;
  int error = 0;
  if (parameters == nullptr) {
    error = connections_.ready(now, id->connection) ? 0 : EINVAL;
  } else {
    error = id->datagram() ? accept_datagram(now, *id, *parameters)
                           : accept_stream(now, *id, *parameters);
    if (error == 0) id->uid = uid;
  }
  deliver(now);
  return error;
}

int RdmaCm::accept_stream(TimeNs now, RdmaId& id, const ConnectionParameters& parameters) {
  wire::CmRep rep;
  if (!fill_answer(parameters.data, rep.private_data)) return EINVAL;
  const bool is_xrc = id.qp_type == qp_type::kXrcReceive;
  (is_xrc ? rep.local_eecn : rep.local_qpn.value) = parameters.qpn & wire::Psn::kMask;
  rep.responder_resources = parameters.responder_resources;
  rep.initiator_depth = parameters.initiator_depth;
  rep.end_to_end_flow_control = parameters.flow_control;
  rep.rnr_retry_count = std::min(parameters.rnr_retry_count, kMaxCount);
  rep.srq = parameters.srq || is_xrc;
  rep.local_ca_guid = interfaces_.device(id.local_gid->device).node_guid;
  return connections_.reply(now, id.connection, rep) ? 0 : EINVAL;
}

int RdmaCm::accept_datagram(TimeNs now, RdmaId& id, const ConnectionParameters& parameters) {
  wire::CmSidrRep rep;
  if (!fill_answer(parameters.data, rep.private_data)) return EINVAL;
  rep.status = wire::cm_sidr::kValid;
  rep.qpn.value = parameters.qpn & wire::Psn::kMask;
  rep.qkey = kDatagramQkey;
  return connections_.answer_service(now, id.connection, rep) ? 0 : EINVAL;
}

int RdmaCm::reject(TimeNs now, OwnerId owner, IdHandle handle, uint8_t reason,
                   const PrivateData& data) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->connection == 0) return EINVAL;
  const uint16_t code = reason == 0 ? wire::cm_reject::kConsumerDefined : reason;
  if (code != wire::cm_reject::kConsumerDefined &&
      code != wire::cm_reject::kVendorOptionNotSupported)
    return EINVAL;
  bool done;
  if (id->datagram()) {
    wire::CmSidrRep rep;
    if (!fill_answer(data, rep.private_data)) return EINVAL;
    rep.status = wire::cm_sidr::kRejected;
    done = connections_.answer_service(now, id->connection, rep);
  } else {
    if (data.length > wire::CmRej{}.private_data.size()) return EINVAL;
    done = connections_.reject(now, id->connection, code, std::span(data.bytes).first(data.length));
  }
  deliver(now);
  return done ? 0 : EINVAL;
}

// A program may disconnect as well after it has heard that the peer did: that is no error.
int RdmaCm::disconnect(TimeNs now, OwnerId owner, IdHandle handle) {
  const auto named = usable(owner, handle);
  if (!named) return named.error();
  RdmaId* const id = *named;
  if (id->connection == 0 || id->datagram()) return EINVAL;
  connections_.disconnect(now, id->connection);
  deliver(now);
  return 0;
}

}  // namespace rocemu::cm
