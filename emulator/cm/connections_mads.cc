// Handles the messages of peers (IBTA vol 1, 12.9.5 to 12.9.8). All of them are hostile input: a
// message changes a connection only when it bears both its numbers and comes from its peer.
#include <algorithm>

#include "base/byte_order.h"
#include "base/time.h"
#include "emulator/cm/connections.h"

namespace rocemu::cm {
namespace {

using Kind = ConnectionEvent::Kind;
using State = ConnectionState;

constexpr uint8_t kMtu256 = 1;
constexpr uint8_t kMtu4096 = 5;

}  // namespace

void Connections::on_mad(TimeNs now, const Route& route, std::span<const std::byte> mad) {
  wire::CmMessage message;
  if (wire::parse_cm(mad, message) != wire::CmParseError::none) return;
  std::visit([&](const auto& body) { handle(now, route, message.transaction_id, body); },
             message.body);
}

Connection* Connections::find_for(const Route& route, CommId id, uint32_t remote_id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->route.remote != route.remote ||
      connection->route.local != route.local || connection->remote_id != remote_id)
    return nullptr;
  return connection;
}

void Connections::on_duplicate_req(const Connection& connection) {
  switch (connection.state) {
    case State::req_received:  // the consumer's decision is not to be hurried
      return send_mra(connection, wire::CmSubject::req);
    case State::dreq_sent:
    case State::timewait:
      return send_rej(connection, wire::cm_reject::kStaleConnection, {});
    default:  // a REP is repeated in its own time
      return;
  }
}

void Connections::handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmReq& req) {
  const RemoteKey by_id{route.remote, req.local_ca_guid, req.local_comm_id};
  if (const auto known = by_remote_id_.find(by_id); known != by_remote_id_.end())
    return on_duplicate_req(connections_.at(known->second));

  const auto refuse = [&](uint16_t reason) {
    wire::CmRej rej;
    rej.remote_comm_id = req.local_comm_id;
    rej.subject = wire::CmSubject::req;
    rej.reason = reason;
    send(route, tid, rej);
  };
  const bool connected = req.transport == wire::CmTransport::rc ||
                         req.transport == wire::CmTransport::uc ||
                         req.transport == wire::CmTransport::extended;
  if (!connected) return refuse(wire::cm_reject::kInvalidTransportType);
  if (req.path_mtu < kMtu256 || req.path_mtu > kMtu4096)
    return refuse(wire::cm_reject::kInvalidMtu);

  const RemoteKey by_qpn{route.remote, req.local_ca_guid, req.local_qpn.value};
  if (const auto stale = by_remote_qpn_.find(by_qpn); stale != by_remote_qpn_.end()) {
    // The peer's QP can't be in two connections: it has forgotten the old one (12.9.8.3.1).
    refuse(wire::cm_reject::kStaleConnection);
    Connection& old = connections_.at(stale->second);
    if (old.state == State::established) send_dreq(now, old);
    return;
  }
  const auto id = new_id();
  if (!id) return refuse(wire::cm_reject::kNoResources);

  Connection& connection = add(*id, route, State::req_received);
  connection.transaction_id = tid;
  connection.remote_id = req.local_comm_id;
  connection.remote_guid = req.local_ca_guid;
  connection.service_id = req.service_id;
  connection.qp.transport = req.transport;
  connection.qp.remote_qpn = req.local_qpn;
  connection.qp.send_psn = req.starting_psn;
  connection.qp.receive_psn = wire::Psn(static_cast<uint32_t>(random_()));
  connection.qp.path_mtu = req.path_mtu;
  connection.qp.ack_timeout = req.primary.local_ack_timeout;
  connection.qp.retry_count = req.retry_count;
  connection.qp.rnr_retry_count = req.rnr_retry_count;
  connection.qp.responder_resources = req.initiator_depth;
  connection.qp.initiator_depth = req.responder_resources;
  connection.qp.traffic_class = req.primary.traffic_class;
  connection.qp.flow_label = req.primary.flow_label;
  by_remote_id_.emplace(by_id, *id);
  by_remote_qpn_.emplace(by_qpn, *id);
  emit(connection, {.kind = Kind::request, .id = *id, .message = req});
}

void Connections::handle(TimeNs, const Route& route, uint64_t tid, const wire::CmRep& rep) {
  Connection* connection = lookup(rep.remote_comm_id);
  const bool ours = connection != nullptr && connection->active &&
                    connection->route.remote == route.remote &&
                    connection->route.local == route.local;
  if (ours && connection->state == State::req_sent) {
    answered(*connection);
    connection->state = State::rep_received;
    connection->remote_id = rep.local_comm_id;
    connection->remote_guid = rep.local_ca_guid;
    connection->qp.remote_qpn = wire::qpn_of(rep, connection->qp.transport);
    connection->qp.send_psn = rep.starting_psn;
    connection->qp.responder_resources = rep.initiator_depth;
    connection->qp.initiator_depth = rep.responder_resources;
    connection->qp.rnr_retry_count = rep.rnr_retry_count;
    by_remote_qpn_.emplace(
        RemoteKey{route.remote, rep.local_ca_guid, connection->qp.remote_qpn.value},
        connection->id);
    return emit(*connection, {.kind = Kind::reply, .id = connection->id, .message = rep});
  }
  if (ours && connection->remote_id == rep.local_comm_id) {
    if (connection->state == State::rep_received)
      return send_mra(*connection, wire::CmSubject::rep);
    if (connection->state == State::established)
      return send(route, connection->transaction_id,
                  wire::CmRtu{connection->id, connection->remote_id, {}});
    if (connection->state == State::dreq_sent) return;
  }
  wire::CmRej rej;
  rej.local_comm_id = rep.remote_comm_id;
  rej.remote_comm_id = rep.local_comm_id;
  rej.subject = wire::CmSubject::rep;
  rej.reason = wire::cm_reject::kInvalidCommId;
  send(route, tid, rej);
}

void Connections::handle(TimeNs, const Route& route, uint64_t, const wire::CmRtu& rtu) {
  if (Connection* connection = find_for(route, rtu.remote_comm_id, rtu.local_comm_id))
    establish(connection->id);
}

void Connections::handle(TimeNs now, const Route& route, uint64_t, const wire::CmRej& rej) {
  Connection* connection = lookup(rej.remote_comm_id);
  if (rej.remote_comm_id == 0 && rej.reason == wire::cm_reject::kTimeout) {
    const auto known =
        by_remote_id_.find({route.remote, load_be64(rej.info.data()), rej.local_comm_id});
    if (known != by_remote_id_.end()) connection = &connections_.at(known->second);
  }
  if (connection == nullptr || connection->route.remote != route.remote ||
      connection->route.local != route.local)
    return;
  // A peer that refuses a REQ at once has no number of its own. Once it has told one, a REJ without
  // is late, and about an earlier copy of the REQ.
  if (connection->remote_id != 0 && rej.local_comm_id != connection->remote_id) return;
  switch (connection->state) {
    case State::req_sent:
      // "No such number" is said of REPs and cannot be meant for a REQ.
      if (rej.subject != wire::CmSubject::req && rej.reason == wire::cm_reject::kInvalidCommId)
        return;
      [[fallthrough]];
    case State::req_received:
    case State::rep_sent:
      emit(*connection, {.kind = Kind::rejected, .id = connection->id, .message = rej});
      return close(*connection);
    case State::rep_received:
    case State::established:
      emit(*connection, {.kind = Kind::rejected, .id = connection->id, .message = rej});
      return enter_timewait(now, *connection);
    case State::dreq_sent:
      emit(*connection, {.kind = Kind::disconnected, .id = connection->id});
      return enter_timewait(now, *connection);
    default:
      return;
  }
}

void Connections::handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmDreq& dreq) {
  // Whoever asks may stop asking: for what nobody knows here, the connection is over.
  send(route, tid, wire::CmDrep{dreq.remote_comm_id, dreq.local_comm_id, {}});
  Connection* connection = find_for(route, dreq.remote_comm_id, dreq.local_comm_id);
  if (connection == nullptr) connection = find_for(route, dreq.remote_comm_id, /*remote_id=*/0);
  if (connection == nullptr) return;
  switch (connection->state) {
    case State::req_sent: {
      // The REP is lost or late, and the peer has left already.
      wire::CmRej rej;
      rej.reason = wire::cm_reject::kConsumerDefined;
      emit(*connection, {.kind = Kind::rejected, .id = connection->id, .message = rej});
      return close(*connection);
    }
    case State::rep_sent:
    case State::rep_received:
    case State::established:
    case State::dreq_sent:
      emit(*connection, {.kind = Kind::disconnected, .id = connection->id});
      return enter_timewait(now, *connection);
    default:
      return;
  }
}

void Connections::handle(TimeNs now, const Route& route, uint64_t, const wire::CmDrep& drep) {
  Connection* connection = find_for(route, drep.remote_comm_id, drep.local_comm_id);
  if (connection == nullptr || connection->state != State::dreq_sent) return;
  emit(*connection, {.kind = Kind::disconnected, .id = connection->id});
  enter_timewait(now, *connection);
}

void Connections::handle(TimeNs now, const Route& route, uint64_t, const wire::CmMra& mra) {
  Connection* connection = lookup(mra.remote_comm_id);
  if (connection == nullptr || connection->route.remote != route.remote) return;
  const bool of_req = connection->state == State::req_sent && mra.subject == wire::CmSubject::req;
  const bool of_rep = connection->state == State::rep_sent && mra.subject == wire::CmSubject::rep;
  if (!of_req && !of_rep) return;
  // It is alive: what is repeated from now on is counted anew, and nobody has to wait behind it.
  if (of_req) stop_asking(*connection);
  connection->retransmission.sends_left = limits_.max_retries;
  set_deadline(*connection,
               now + coded_time_ns(std::min(mra.service_timeout, limits_.service_timeout)) +
                   coded_time_ns(limits_.packet_lifetime));
}

void Connections::handle(TimeNs, const Route& route, uint64_t tid, const wire::CmSidrReq& req) {
  const std::pair key{route.remote, req.request_id};
  if (const auto known = by_sidr_request_.find(key); known != by_sidr_request_.end()) {
    const Connection& connection = connections_.at(known->second);
    if (connection.state == State::sidr_answered)
      mads_.push_back({connection.route, connection.retransmission.unanswered});
    return;
  }
  const auto id = new_id();
  if (!id) return;  // as if it had been lost
  Connection& connection = add(*id, route, State::sidr_req_received);
  connection.transaction_id = tid;
  connection.remote_id = req.request_id;
  connection.service_id = req.service_id;
  by_sidr_request_.emplace(key, *id);
  emit(connection, {.kind = Kind::sidr_request, .id = *id, .message = req});
}

void Connections::handle(TimeNs, const Route& route, uint64_t, const wire::CmSidrRep& rep) {
  Connection* connection = lookup(rep.request_id);
  if (connection == nullptr || connection->state != State::sidr_req_sent ||
      connection->route.remote != route.remote || connection->service_id != rep.service_id)
    return;
  emit(*connection, {.kind = Kind::sidr_reply, .id = connection->id, .message = rep});
  close(*connection);
}

// Alternate paths are not served (12.8), and the asking side is told so.
void Connections::handle(TimeNs, const Route& route, uint64_t tid, const wire::CmLap& lap) {
  const Connection* connection = find_for(route, lap.remote_comm_id, lap.local_comm_id);
  if (connection == nullptr || connection->state != State::established) return;
  send(route, tid, wire::CmApr{lap.remote_comm_id, lap.local_comm_id, wire::kAprUnsupported});
}

// An APR answers a LAP, and none is ever sent from here.
void Connections::handle(TimeNs, const Route&, uint64_t, const wire::CmApr&) {}

}  // namespace rocemu::cm
