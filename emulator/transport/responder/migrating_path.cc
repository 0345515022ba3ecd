#include "emulator/transport/responder/migrating_path.h"

#include "emulator/transport/responder/packet_checks.h"

namespace rocemu::transport {

// The alternate path comes first: it may have the addresses of the path, and differ in what the
// network makes of it. A packet with MigReq 1 over the path itself is one that the peer sent before
// it was armed, and came late.
Refusal check_migrating_path(QpContext& context, const wire::Packet& packet) {
  PathMigration& migration = context.migration;
  const QpAttributes& attributes = context.attributes;
  if (packet.bth.mig_req && migration.state() == MigrationState::armed &&
      attributes.alternate != nullptr &&
      check_connection(context, packet, attributes.alternate->path) == Refusal::none) {
    migration.migrate(context);
    return Refusal::none;
  }
  const Refusal refusal = check_connection(context, packet, attributes.path);
  if (refusal == Refusal::none) migration.on_path_used(packet.bth.mig_req);
  if (refusal != Refusal::wrong_address) return refusal;
  const Path* const left = migration.left_path();
  if (left != nullptr && check_connection(context, packet, *left) == Refusal::none)
    return Refusal::none;
  if (packet.bth.mig_req && !migration.migrated()) migration.refuse(context);
  return refusal;
}

}  // namespace rocemu::transport
