// Translates between the structures of rdma/rdma_user_cm.h and the values of emulator/cm.
#pragma once

#include <rdma/rdma_user_cm.h>

#include <optional>

#include "emulator/cm/rdma_cm.h"

namespace rocemu::daemon {

// A sockaddr_in or sockaddr_in6 in the room of the latter; empty for another family.
std::optional<cm::SocketAddress> address_from(const sockaddr_in6& address);

// Takes the first `length` of `bytes`, which holds kMaxPrivateDataBytes.
cm::PrivateData data_from(const uint8_t* bytes, uint8_t length);
cm::ConnectionParameters parameters_from(const rdma_ucm_conn_param& parameters);

rdma_ucm_query_route_resp describe_route(const cm::RdmaCm& cm, const cm::RdmaId& id);
ib_uverbs_qp_attr describe_setup(const cm::QpSetup& setup);
rdma_ucm_event_resp describe_event(const cm::RdmaEvent& event);

}  // namespace rocemu::daemon
