// The attributes that a connection's QP has to be set to (ibv_modify_qp(3)), for rdma_init_qp_attr.
#include <cerrno>

#include "base/verbs/numbers.h"
#include "emulator/cm/rdma_cm.h"

namespace rocemu::cm {
namespace {

constexpr uint8_t kHopLimit = 64;

constexpr uint32_t number_of(verbs::QpState state) { return static_cast<uint32_t>(state); }

using enum verbs::qp_attribute::Mask;
using namespace verbs::access;

bool peer_known(const Connection& connection) {
  switch (connection.state) {
    case ConnectionState::req_received:
    case ConnectionState::rep_sent:
    case ConnectionState::rep_received:
    case ConnectionState::established:
      return true;
    default:
      return false;
  }
}

// Initiators send; receivers of XRC answer only. Others do both.
bool initiates(const RdmaId& id) {
  return id.qp_type == qp_type::kRc || id.qp_type == qp_type::kXrcSend;
}
bool responds(const RdmaId& id) {
  return id.qp_type == qp_type::kRc || id.qp_type == qp_type::kXrcReceive;
}

}  // namespace

AddressVector RdmaCm::address_to(const RdmaId& id) const {
  AddressVector address;
  address.dgid = id.destination->ip;
  address.sgid_index = id.local_gid->gid_index;
  address.hop_limit = kHopLimit;
  address.traffic_class = id.options.traffic_class;
  if (const Connection* connection = connections_.find(id.connection)) {
    address.flow_label = connection->qp.flow_label;
    if (!id.datagram()) address.traffic_class = connection->qp.traffic_class;
  }
  return address;
}

Result<QpSetup> RdmaCm::qp_setup(OwnerId owner, IdHandle handle, uint32_t qp_state) const {
  const auto named = usable(owner, handle);
  if (!named) return tl::unexpected(named.error());
  const RdmaId* const id = *named;
  if (!id->local_gid) return tl::unexpected(EINVAL);
  const Connection* connection = connections_.find(id->connection);
  QpSetup setup;
  setup.state = static_cast<uint8_t>(qp_state);
  setup.mask = kState;
  if (qp_state == number_of(verbs::QpState::init)) {
    setup.mask |= kPkeyIndex | kPort;
    if (id->datagram()) {
      setup.mask |= kQkey;
      setup.qkey = kDatagramQkey;
      return setup;
    }
    setup.mask |= kAccessFlags;
    if (connection != nullptr) {
      setup.access_flags = kRemoteWrite;
      if (connection->qp.responder_resources != 0)
        setup.access_flags |= kRemoteRead | kRemoteAtomic | kFlushGlobal | kFlushPersistent;
    }
    return setup;
  }
  if (id->datagram() || connection == nullptr || !peer_known(*connection))
    return tl::unexpected(EINVAL);
  switch (qp_state) {
    case number_of(verbs::QpState::ready_to_receive):
      setup.mask |= kAv | kPathMtu | kDestQpn | kRqPsn;
      setup.address = address_to(*id);
      setup.path_mtu = connection->qp.path_mtu;
      setup.destination_qpn = connection->qp.remote_qpn.value;
      setup.receive_psn = connection->qp.receive_psn.value();
      if (responds(*id)) {
        setup.mask |= kMaxDestRdAtomic | kMinRnrTimer;
        setup.max_dest_rd_atomic = connection->qp.responder_resources;
      }
      return setup;
    case number_of(verbs::QpState::ready_to_send):
      setup.mask |= kSqPsn;
      setup.send_psn = connection->qp.send_psn.value();
      if (initiates(*id)) {
        setup.mask |= kRetryCount | kRnrRetry | kMaxQpRdAtomic;
        setup.retry_count = connection->qp.retry_count;
        setup.rnr_retry = connection->qp.rnr_retry_count;
        setup.max_rd_atomic = connection->qp.initiator_depth;
      }
      if (initiates(*id) || responds(*id)) {
        setup.mask |= kTimeout;
        setup.timeout = id->options.ack_timeout.value_or(connection->qp.ack_timeout);
      }
      return setup;
    default:
      return tl::unexpected(EINVAL);
  }
}

}  // namespace rocemu::cm
