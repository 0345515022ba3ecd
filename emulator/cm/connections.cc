#include "emulator/cm/connections.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"

namespace rocemu::cm {
namespace {

using Kind = ConnectionEvent::Kind;
using State = ConnectionState;

constexpr TimeNs kSidrAnswerKeptNs = 10'000'000'000;  // longer than a SIDR REQ is repeated after
constexpr uint8_t kLongestTimewait =
    20;  // 4.3 s, coded: the peer chooses it, and the places are few

// Erases the entry of `key` if it belongs to `id`.
template <class Map, class Key>
void drop(Map& map, const Key& key, CommId id) {
  const auto found = map.find(key);
  if (found != map.end() && found->second == id) map.erase(found);
}

uint64_t transaction_of(const Route& route, CommId id) {
  return uint64_t{route.device + 1} << 32 | id;
}

}  // namespace

Connections::Connections(const RandomSource& random, const ConnectionLimits& limits)
    : limits_(limits), random_(random), next_id_(static_cast<uint32_t>(random_())) {}

const Connection* Connections::find(CommId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

Connection* Connections::lookup(CommId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

std::optional<CommId> Connections::new_id() {
  if (connections_.size() >= limits_.max_connections) return std::nullopt;
  do ++next_id_;
  while (next_id_ == 0 || connections_.contains(next_id_));
  return next_id_;
}

Connection& Connections::add(CommId id, const Route& route, ConnectionState state) {
  Connection& connection = connections_[id];
  connection.id = id;
  connection.state = state;
  connection.route = route;
  return connection;
}

void Connections::forget_qpn(const Connection& connection) {
  drop(by_remote_qpn_,
       RemoteKey{connection.route.remote, connection.remote_guid, connection.qp.remote_qpn.value},
       connection.id);
}

void Connections::forget_peer(const Connection& connection) {
  forget_qpn(connection);
  drop(by_remote_id_,
       RemoteKey{connection.route.remote, connection.remote_guid, connection.remote_id},
       connection.id);
  drop(by_sidr_request_, std::pair{connection.route.remote, connection.remote_id}, connection.id);
}

void Connections::charge(CommId id, uint64_t program) {
  Connection* connection = lookup(id);
  if (connection == nullptr) return;
  connection->program = program;
  ++held_[program];
}

size_t Connections::held_by(uint64_t program) const {
  const auto found = held_.find(program);
  return found == held_.end() ? 0 : found->second;
}

void Connections::remove(Connection& connection) {
  if (const auto found = held_.find(connection.program); found != held_.end())
    if (--found->second == 0) held_.erase(found);
  connections_.erase(connection.id);
}

void Connections::erase(Connection& connection) {
  answered(connection);
  forget_peer(connection);
  remove(connection);
}

void Connections::close(Connection& connection) {
  answered(connection);
  forget_peer(connection);
  connection.state = State::closed;
  if (!connection.owned) remove(connection);
}

// The time in which packets of the old connection may still come (12.9.8.5), its REQ among them.
// The peer's QP may be in another connection by then.
void Connections::enter_timewait(TimeNs now, Connection& connection) {
  forget_qpn(connection);
  connection.state = State::timewait;
  set_deadline(connection,
               now + coded_time_ns(std::min(connection.qp.ack_timeout, kLongestTimewait)));
}

void Connections::set_deadline(Connection& connection, TimeNs at) {
  if (connection.retransmission.deadline_ns != kNever)
    deadlines_.erase({connection.retransmission.deadline_ns, connection.id});
  connection.retransmission.deadline_ns = at;
  if (at != kNever) deadlines_.insert({at, connection.id});
}

void Connections::start_waiting(TimeNs now, Connection& connection) {
  connection.retransmission.sends_left = limits_.max_retries;
  connection.retransmission.longest_wait_ns =
      2 * coded_time_ns(limits_.packet_lifetime) + coded_time_ns(limits_.response_timeout);
  connection.retransmission.wait_ns = limits_.first_wait_ns;
  if (connection.asking)
    connection.retransmission.wait_ns += requests_under_way_ * limits_.wait_per_request_ns;
  connection.retransmission.wait_ns =
      std::min(connection.retransmission.wait_ns, connection.retransmission.longest_wait_ns);
  set_deadline(connection, now + connection.retransmission.wait_ns);
}

void Connections::emit(const Connection& connection, ConnectionEvent event) {
  if (connection.owned) events_.push_back(std::move(event));
}

bool Connections::next_mad(OutgoingMad& mad) {
  if (mads_.empty()) return false;
  mad = mads_.front();
  mads_.pop_front();
  return true;
}

bool Connections::next_event(ConnectionEvent& event) {
  if (events_.empty()) return false;
  event = std::move(events_.front());
  events_.pop_front();
  return true;
}

std::optional<CommId> Connections::connect(TimeNs now, const Route& route, wire::CmReq req) {
  const auto id = new_id();
  if (!id) return std::nullopt;
  Connection& connection = add(*id, route, State::req_sent);
  connection.active = connection.asking = true;
  ++requests_under_way_;
  connection.transaction_id = transaction_of(route, *id);

  req.local_comm_id = *id;
  req.remote_cm_response_timeout = limits_.response_timeout;
  req.local_cm_response_timeout = limits_.response_timeout;
  req.max_cm_retries = limits_.max_retries;
  req.starting_psn = wire::Psn(static_cast<uint32_t>(random_()));
  req.primary.local_lid = req.primary.remote_lid = 0xffff;
  req.primary.local_gid = route.local;
  req.primary.remote_gid = route.remote;
  req.primary.flow_label = static_cast<uint32_t>(random_() & 0xfffff);
  if (req.primary.local_ack_timeout == 0)
    req.primary.local_ack_timeout = static_cast<uint8_t>(limits_.packet_lifetime + 1);

  connection.local_guid = req.local_ca_guid;
  connection.service_id = req.service_id;
  connection.qp.transport = req.transport;
  connection.qp.local_qpn = req.local_qpn;
  connection.qp.receive_psn = req.starting_psn;
  connection.qp.path_mtu = req.path_mtu;
  connection.qp.ack_timeout = req.primary.local_ack_timeout;
  connection.qp.retry_count = req.retry_count;
  connection.qp.responder_resources = req.responder_resources;
  connection.qp.initiator_depth = req.initiator_depth;
  connection.qp.traffic_class = req.primary.traffic_class;
  connection.qp.flow_label = req.primary.flow_label;
  send_until_answered(now, connection, req);
  return id;
}

bool Connections::reply(TimeNs now, CommId id, wire::CmRep rep) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::req_received) return false;
  rep.local_comm_id = id;
  rep.remote_comm_id = connection->remote_id;
  rep.target_ack_delay = limits_.local_ack_delay;
  connection->local_guid = rep.local_ca_guid;
  connection->qp.local_qpn = wire::qpn_of(rep, connection->qp.transport);
  connection->qp.responder_resources = rep.responder_resources;
  connection->qp.initiator_depth = rep.initiator_depth;
  rep.starting_psn = connection->qp.receive_psn;  // the QP may have been set up with it already
  connection->state = State::rep_sent;
  send_until_answered(now, *connection, rep);
  return true;
}

bool Connections::ready(TimeNs, CommId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::rep_received) return false;
  connection->state = State::established;
  send(connection->route, connection->transaction_id, wire::CmRtu{id, connection->remote_id, {}});
  return true;
}

bool Connections::establish(CommId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::rep_sent) return false;
  answered(*connection);
  connection->state = State::established;
  emit(*connection, {.kind = Kind::ready, .id = id});
  return true;
}

void Connections::send_rej(const Connection& connection, uint16_t reason,
                           std::span<const std::byte> data) {
  wire::CmRej rej;
  rej.local_comm_id = connection.id;
  rej.remote_comm_id = connection.remote_id;
  rej.reason = reason;
  switch (connection.state) {
    case State::req_received:
      rej.local_comm_id = 0;
      rej.subject = wire::CmSubject::req;
      break;
    case State::rep_received:
      rej.subject = wire::CmSubject::rep;
      break;
    default:
      rej.subject = wire::CmSubject::other;
  }
  if (reason == wire::cm_reject::kTimeout) {
    // The peer may not know our number of it: the GUID says who we are (12.6.7.2).
    rej.info_bytes = sizeof(uint64_t);
    store_be64(rej.info.data(), connection.local_guid);
  }
  std::copy_n(data.begin(), std::min(data.size(), rej.private_data.size()),
              rej.private_data.begin());
  send(connection.route, connection.transaction_id, rej);
}

bool Connections::reject(TimeNs now, CommId id, uint16_t reason,
                         std::span<const std::byte> private_data) {
  Connection* connection = lookup(id);
  if (connection == nullptr) return false;
  switch (connection->state) {
    case State::req_sent:
    case State::req_received:
    case State::rep_sent:
      send_rej(*connection, reason, private_data);
      close(*connection);
      return true;
    case State::rep_received:
      send_rej(*connection, reason, private_data);
      enter_timewait(now, *connection);
      return true;
    default:
      return false;
  }
}

void Connections::send_dreq(TimeNs now, Connection& connection) {
  connection.state = State::dreq_sent;
  connection.transaction_id = transaction_of(connection.route, connection.id);
  send_until_answered(
      now, connection,
      wire::CmDreq{connection.id, connection.remote_id, connection.qp.remote_qpn, {}});
}

bool Connections::disconnect(TimeNs now, CommId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::established) return false;
  send_dreq(now, *connection);
  return true;
}

std::optional<CommId> Connections::ask_service(TimeNs now, const Route& route,
                                               wire::CmSidrReq req) {
  const auto id = new_id();
  if (!id) return std::nullopt;
  Connection& connection = add(*id, route, State::sidr_req_sent);
  connection.active = connection.asking = true;
  ++requests_under_way_;
  connection.transaction_id = transaction_of(route, *id);
  connection.service_id = req.service_id;
  req.request_id = *id;
  send_until_answered(now, connection, req);
  return id;
}

bool Connections::answer_service(TimeNs now, CommId id, wire::CmSidrRep rep) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::sidr_req_received) return false;
  rep.request_id = connection->remote_id;
  rep.service_id = connection->service_id;
  connection->state = State::sidr_answered;
  connection->retransmission.unanswered = wire::build_cm({connection->transaction_id, rep});
  mads_.push_back({connection->route, connection->retransmission.unanswered});
  set_deadline(*connection, now + kSidrAnswerKeptNs);
  return true;
}

void Connections::abandon(TimeNs now, CommId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr) return;
  connection->owned = false;
  switch (connection->state) {
    case State::req_sent:
      reject(now, id, wire::cm_reject::kTimeout, {});
      break;
    case State::req_received:
    case State::rep_received:
      reject(now, id, wire::cm_reject::kConsumerDefined, {});
      break;
    case State::rep_sent:
      // The peer may take itself for connected, its RTU being lost or late: a REJ, which is sent
      // once, is not enough.
      send_rej(*connection, wire::cm_reject::kConsumerDefined, {});
      send_dreq(now, *connection);
      break;
    case State::established:
      send_dreq(now, *connection);
      break;
    case State::dreq_sent:
    case State::timewait:
    case State::sidr_answered:
      break;
    case State::sidr_req_received: {
      wire::CmSidrRep rep;
      rep.status = wire::cm_sidr::kRejected;
      answer_service(now, id, rep);
      break;
    }
    case State::sidr_req_sent:
    case State::closed:
      erase(*connection);
      break;
  }
}

void Connections::ignore(CommId id) {
  if (Connection* connection = lookup(id)) erase(*connection);
}

void Connections::give_up(TimeNs now, Connection& connection) {
  switch (connection.state) {
    case State::req_sent:
      emit(connection, {.kind = Kind::unreachable, .id = connection.id});
      send_rej(connection, wire::cm_reject::kTimeout, {});
      return close(connection);
    case State::rep_sent:
      emit(connection, {.kind = Kind::unreachable, .id = connection.id});
      connection.owned = false;
      send_rej(connection, wire::cm_reject::kTimeout, {});
      return send_dreq(now, connection);
    case State::sidr_req_sent:
      emit(connection, {.kind = Kind::unreachable, .id = connection.id});
      return close(connection);
    case State::dreq_sent:
      emit(connection, {.kind = Kind::disconnected, .id = connection.id, .timed_out = true});
      return enter_timewait(now, connection);
    case State::timewait:
      emit(connection, {.kind = Kind::timewait_over, .id = connection.id});
      return close(connection);
    default:
      return close(connection);
  }
}

void Connections::on_timeout(TimeNs now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Connection& connection = connections_.at(deadlines_.begin()->second);
    const bool repeats =
        connection.state == State::req_sent || connection.state == State::rep_sent ||
        connection.state == State::dreq_sent || connection.state == State::sidr_req_sent;
    if (!repeats || connection.retransmission.sends_left == 0) {
      give_up(now, connection);
      continue;
    }
    --connection.retransmission.sends_left;
    mads_.push_back({connection.route, connection.retransmission.unanswered});
    connection.retransmission.wait_ns =
        std::min(2 * connection.retransmission.wait_ns, connection.retransmission.longest_wait_ns);
    set_deadline(connection, now + connection.retransmission.wait_ns);
  }
}

void Connections::send_mra(const Connection& connection, wire::CmSubject subject) {
  send(connection.route, connection.transaction_id,
       wire::CmMra{connection.id, connection.remote_id, subject, limits_.service_timeout, {}});
}

}  // namespace rocemu::cm
