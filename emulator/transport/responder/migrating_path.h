// The check of a packet's path at a QP that watches its peer's (qp/path_migration.h).
#pragma once

#include "emulator/transport/qp/qp_context.h"
#include "emulator/transport/responder/refusals.h"
#include "emulator/wire/packet.h"

namespace rocemu::transport {

// Checks a packet as check_connection() of packet_checks.h does, by the path, the alternate one or
// the one that was left; the QP migrates here when the packet says so.
Refusal check_migrating_path(QpContext& context, const wire::Packet& packet);

}  // namespace rocemu::transport
