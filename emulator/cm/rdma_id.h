// The objects of librdmacm's calls: ids, their parameters and their events. Numbers as in
// rdma/rdma_user_cm.h and rdma/rdma_cma.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <variant>

#include "base/verbs/numbers.h"
#include "emulator/cm/connection.h"
#include "emulator/cm/interfaces.h"
#include "emulator/cm/listen_gaps.h"

namespace rocemu::cm {

using OwnerId = uint32_t;    // a program's connection to the NIC
using ProgramId = uint64_t;  // a process, with all its owners
using ChannelId = uint32_t;  // one opened /dev/infiniband/rdma_cm
using IdHandle = uint32_t;   // an id, as the program knows it
using GroupHandle = uint32_t;

namespace port_space = verbs::port_space;
namespace qp_type = verbs::qp_type;

inline constexpr uint32_t kDatagramQkey = verbs::kRdmaUdpQkey;
inline constexpr size_t kMaxPrivateDataBytes = 256;

using EventType = verbs::CmEventType;

struct PrivateData {
  std::array<std::byte, kMaxPrivateDataBytes> bytes{};
  uint8_t length = 0;
};

// struct rdma_conn_param
struct ConnectionParameters {
  PrivateData data;
  uint32_t qpn = 0;
  bool srq = false;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  bool flow_control = false;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
};

struct AddressVector {
  wire::Gid dgid{};
  uint8_t sgid_index = 0;
  uint32_t flow_label = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
  uint16_t dlid = 0;
};

// struct rdma_ud_param
struct DatagramParameters {
  PrivateData data;
  uint32_t qpn = 0;
  uint32_t qkey = 0;
  AddressVector address;
};

// What a program gives an event of its own (rdma_write_cm_event(3)); the NIC does not read it.
struct UserArgument {
  uint64_t value = 0;
};

using EventParameters = std::variant<ConnectionParameters, DatagramParameters, UserArgument>;

struct RdmaEvent {
  EventType type = EventType::address_resolved;
  IdHandle counted = 0;  // the id (or the listener) whose events_reported it is among
  IdHandle id = 0;       // the id it is about: for connect_request the new one
  std::optional<GroupHandle> group;
  uint64_t uid = 0;
  int32_t status = 0;  // 0, a negative errno, or the reason of a REJ
  EventParameters parameters;
};

enum class IdState : uint8_t {
  idle,
  bound,
  address_resolved,
  route_resolved,
  listening,
  connecting,  // from CONNECT or the peer's REQ on, as long as `connection` lives
  disconnected,
  removed,  // with its device; a handle and nothing else
};

// Set by rdma_set_option(3).
struct IdOptions {
  bool reuse = false;
  bool only_ipv6 = false;
  uint8_t traffic_class = 0;
  std::optional<uint8_t> ack_timeout;  // coded
};

// The connect_request events of a listener that the program has not taken, and how many may wait.
struct ConnectRequests {
  uint32_t limit = 0;
  uint32_t waiting = 0;
  Clients clients;
};

struct RdmaId {
  IdHandle handle = 0;
  ChannelId channel = 0;
  uint64_t uid = 0;  // 0: a new connection that the program has not accepted yet
  // False while the connect_request that tells of it waits: until then the program cannot name it.
  bool seen = true;
  uint16_t port_space = 0;
  uint8_t qp_type = 0;
  IdState state = IdState::idle;
  std::optional<SocketAddress> source;
  std::optional<SocketAddress> destination;
  bool port_bound = false;
  std::optional<LocalGid> local_gid;  // the device and GID it is tied to
  IdOptions options;
  CommId connection = 0;  // 0: none
  ConnectRequests requests;
  uint32_t events_reported = 0;
  std::set<GroupHandle> groups{};  // those that it has joined

  bool datagram() const { return qp_type == qp_type::kUd; }
};

// Attributes for a QP, with the bits of enum ibv_qp_attr_mask.
struct QpSetup {
  uint32_t mask = 0;
  uint8_t state = 0;
  uint8_t path_mtu = 0;
  uint32_t qkey = 0;
  uint32_t receive_psn = 0;
  uint32_t send_psn = 0;
  uint32_t destination_qpn = 0;
  uint32_t access_flags = 0;
  AddressVector address;
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t timeout = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;
};

}  // namespace rocemu::cm
