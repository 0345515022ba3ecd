// The communication manager of the InfiniBand architecture (IBTA vol 1, chapter 12): connections by
// REQ, REP, RTU, their end by DREQ, DREP or REJ, datagram services by SIDR. Sans-IO: MADs and time
// come in as parameters; MADs and events are taken out after each call.
//
// A message that wants an answer is repeated: first after `first_wait_ns`, and later when many REQs
// are under way, which a program answers one after the other; then after twice that time and so on
// up to the time that the standard gives the peer, `max_retries` times in all. That is sooner than
// the peer has to answer, so it may get the message twice: a peer that has it already says so by
// MRA. A message about a connection that nobody knows any more is answered so that its sender
// stops: DREQ by DREP, REP by REJ.
//
// Not thread safe. `device` numbers mean nothing here.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/time.h"
#include "emulator/cm/connection.h"
#include "emulator/cm/types.h"
#include "emulator/wire/cm_message.h"

namespace rocemu::cm {

struct ConnectionLimits {
  size_t max_connections = 65536;  // and TIMEWAITs; beyond, REQs are refused
  TimeNs first_wait_ns = 50'000'000;
  TimeNs wait_per_request_ns = 250'000;  // more, for each REQ that is not answered yet
  uint8_t max_retries = 15;
  // These are told the peer, and assumed of it.
  uint8_t response_timeout = 20;  // 4.3 s
  uint8_t packet_lifetime = 16;   // 268 ms, as Linux assumes for RoCE
  uint8_t local_ack_delay = 15;
  uint8_t service_timeout = 20;  // said by MRA: the consumer takes its time
};

struct ConnectionEvent {
  enum class Kind : uint8_t {
    request,       // CmReq: to be answered by reply() or reject(), or to be forgotten by abandon()
    reply,         // CmRep: to be answered by ready() or reject()
    ready,         // the peer's RTU
    rejected,      // CmRej
    unreachable,   // no answer to REQ, REP or SIDR REQ
    disconnected,  // by the peer, or both sides know by now
    timewait_over,
    sidr_request,  // CmSidrReq
    sidr_reply,    // CmSidrRep
  };
  Kind kind;
  CommId id;
  bool timed_out = false;  // disconnected: without the peer's answer
  std::variant<std::monostate, wire::CmReq, wire::CmRep, wire::CmRej, wire::CmSidrReq,
               wire::CmSidrRep>
      message{};
};

class Connections {
 public:
  // `random` outlives this.
  Connections(const RandomSource& random, const ConnectionLimits& limits);

  // Sends a REQ. The connection's own fields of `req` (ids, timeouts, retries, starting PSN) are
  // filled in here, but for an ACK timeout that is not 0. Empty when there is no room.
  std::optional<CommId> connect(TimeNs now, const Route& route, wire::CmReq req);
  // These answer false when the connection's state does not allow it.
  bool reply(TimeNs now, CommId id, wire::CmRep rep);
  bool ready(TimeNs now, CommId id);
  // The first data came before the RTU: as if that had come.
  bool establish(CommId id);
  bool reject(TimeNs now, CommId id, uint16_t reason, std::span<const std::byte> private_data);
  bool disconnect(TimeNs now, CommId id);

  std::optional<CommId> ask_service(TimeNs now, const Route& route, wire::CmSidrReq req);
  bool answer_service(TimeNs now, CommId id, wire::CmSidrRep rep);

  // Nobody wants the connection's events any more: it ends in the way its state asks for, and its
  // number is not to be used again. What must reach the peer is still repeated.
  void abandon(TimeNs now, CommId id);
  // The connection counts among those of `program` from now on, which is not 0, with its TIMEWAIT.
  void charge(CommId id, uint64_t program);
  size_t held_by(uint64_t program) const;

  // Forgets a request as if it had been lost on the way: the peer asks again.
  void ignore(CommId id);

  void on_mad(TimeNs now, const Route& route, std::span<const std::byte> mad);
  void on_timeout(TimeNs now);
  TimeNs next_deadline() const { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }

  bool next_mad(OutgoingMad& mad);
  bool next_event(ConnectionEvent& event);

  const Connection* find(CommId id) const;
  // All connections, in any state.
  const std::unordered_map<CommId, Connection>& all() const { return connections_; }
  const ConnectionLimits& limits() const { return limits_; }

 private:
  // A peer's address, its GUID, and its communication id or QPN. Anybody can write a GUID, and that
  // of two devices with one MAC, as VLANs have it, is the same.
  using RemoteKey = std::tuple<wire::Gid, uint64_t, uint32_t>;

  Connection* lookup(CommId id);
  Connection* find_for(const Route& route, CommId id, uint32_t remote_id);
  std::optional<CommId> new_id();
  Connection& add(CommId id, const Route& route, ConnectionState state);
  void erase(Connection& connection);
  void remove(Connection& connection);
  void forget_qpn(const Connection& connection);
  void forget_peer(const Connection& connection);

  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmReq& req);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmRep& rep);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmRtu& rtu);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmRej& rej);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmDreq& dreq);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmDrep& drep);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmMra& mra);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmSidrReq& req);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmSidrRep& rep);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmLap& lap);
  void handle(TimeNs now, const Route& route, uint64_t tid, const wire::CmApr& apr);
  void on_duplicate_req(const Connection& connection);

  void emit(const Connection& connection, ConnectionEvent event);
  template <class Body>
  void send(const Route& route, uint64_t tid, const Body& body) {
    mads_.push_back({route, wire::build_cm({tid, body})});
  }
  // Sends, and again until answered().
  template <class Body>
  void send_until_answered(TimeNs now, Connection& connection, const Body& body) {
    connection.retransmission.unanswered = wire::build_cm({connection.transaction_id, body});
    mads_.push_back({connection.route, connection.retransmission.unanswered});
    start_waiting(now, connection);
  }
  void start_waiting(TimeNs now, Connection& connection);
  void answered(Connection& connection) {
    set_deadline(connection, kNever);
    stop_asking(connection);
  }
  void stop_asking(Connection& connection) {
    if (connection.asking) --requests_under_way_;
    connection.asking = false;
  }
  void set_deadline(Connection& connection, TimeNs at);
  void give_up(TimeNs now, Connection& connection);
  void send_dreq(TimeNs now, Connection& connection);
  void send_mra(const Connection& connection, wire::CmSubject subject);
  void send_rej(const Connection& connection, uint16_t reason, std::span<const std::byte> data);
  void enter_timewait(TimeNs now, Connection& connection);
  void close(Connection& connection);

  ConnectionLimits limits_;
  const RandomSource& random_;
  uint32_t next_id_;
  std::unordered_map<CommId, Connection> connections_;
  std::map<RemoteKey, CommId> by_remote_id_;   // connections that the peer asked for
  std::map<RemoteKey, CommId> by_remote_qpn_;  // connections that are not over
  std::map<std::pair<wire::Gid, uint32_t>, CommId> by_sidr_request_;
  std::set<std::pair<TimeNs, CommId>> deadlines_;
  std::unordered_map<uint64_t, size_t> held_;  // connections by program
  uint32_t requests_under_way_ = 0;            // REQs of ours without an answer
  std::deque<OutgoingMad> mads_;
  std::deque<ConnectionEvent> events_;
};

}  // namespace rocemu::cm
