#include "emulator/daemon/view/cm_status.h"

#include <nlohmann/json.hpp>
#include <string>

#include "emulator/daemon/attachment/address_text.h"

namespace rocemu::daemon {
namespace {

using nlohmann::ordered_json;
using State = cm::ConnectionState;

const char* state_text(State state) {
  switch (state) {
    case State::req_sent:
      return "REQ sent";
    case State::req_received:
      return "REQ received";
    case State::rep_sent:
      return "REP sent";
    case State::rep_received:
      return "REP received";
    case State::established:
      return "established";
    case State::dreq_sent:
      return "DREQ sent";
    case State::timewait:
      return "TIMEWAIT";
    case State::sidr_req_sent:
      return "SIDR REQ sent";
    case State::sidr_req_received:
      return "SIDR REQ received";
    case State::sidr_answered:
      return "SIDR answered";
    case State::closed:
      return "closed";
  }
  return "unknown";
}

const char* port_space_text(uint16_t port_space) {
  switch (port_space) {
    case cm::port_space::kTcp:
      return "TCP";
    case cm::port_space::kUdp:
      return "UDP";
    case cm::port_space::kIb:
      return "IB";
    default:
      return "IPOIB";
  }
}

ordered_json describe_listener(const cm::RdmaId& id) {
  return {{"address", to_text(id.source->ip)}, {"any_address", id.source->is_any()},
          {"port", id.source->port},           {"port_space", port_space_text(id.port_space)},
          {"backlog", id.requests.limit},      {"requests_waiting", id.requests.waiting}};
}

ordered_json describe_connection(const cm::Connection& connection) {
  return {{"state", state_text(connection.state)},
          {"device", connection.route.device},
          {"active", connection.active},
          {"owned", connection.owned},
          {"local_address", to_text(connection.route.local)},
          {"remote_address", to_text(connection.route.remote)},
          {"service_port", connection.service_id & 0xffff},
          {"local_qpn", connection.qp.local_qpn.value},
          {"remote_qpn", connection.qp.remote_qpn.value}};
}

}  // namespace

ordered_json describe(const cm::RdmaCm& cm) {
  ordered_json listeners = ordered_json::array();
  for (const auto& [handle, id] : cm.ids())
    if (id.state == cm::IdState::listening) listeners.push_back(describe_listener(id));
  ordered_json connections = ordered_json::array();
  size_t over = 0;
  for (const auto& [id, connection] : cm.connections().all()) {
    if (connection.state == State::timewait || connection.state == State::sidr_answered) {
      ++over;
    } else {
      connections.push_back(describe_connection(connection));
    }
  }
  return {{"channels", cm.channel_count()}, {"ids", cm.ids().size()},
          {"groups", cm.group_count()},     {"listeners", listeners},
          {"connections", connections},     {"in_timewait", over},
          {"events_lost", cm.events_lost()}};
}

}  // namespace rocemu::daemon
