// Path migration of the HCA's QPs (IBTA vol 1, 17.2.8; the transport's part is
// transport/qp/path_migration.h).
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

using transport::MigrationRequest;
using transport::MigrationState;
using transport::QpState;

// Checks a request for migration as Linux's rdmavt does: REARM in RTS alone and not of a QP that is
// armed, MIGRATED not of one that is in REARM, and ARMED is for the device alone. To rearm takes a
// path to migrate to.
int Hca::Impl::check_migration(const QpBody& body, const QpAttr& attr, uint32_t mask,
                               QpState to) const {
  if ((mask & kPathMigState) == 0) return 0;
  const MigrationState now = endpoint->migration_state(body.qpn);
  switch (attr.path_mig_state) {
    case static_cast<uint32_t>(MigrationState::rearm): {
      const bool has_alternate = (mask & kAltPath) != 0 || body.paths.alternate != nullptr;
      const bool may =
          to == QpState::ready_to_send && now != MigrationState::armed && has_alternate;
      return may ? 0 : EINVAL;
    }
    case static_cast<uint32_t>(MigrationState::migrated):
      return now != MigrationState::rearm ? 0 : EINVAL;
    default:
      return EINVAL;
  }
}

MigrationRequest migration_asked_for(const QpAttr& attr, uint32_t mask) {
  if ((mask & kPathMigState) == 0) return MigrationRequest::none;
  return attr.path_mig_state == static_cast<uint32_t>(MigrationState::rearm)
             ? MigrationRequest::rearm
             : MigrationRequest::migrate;
}

// The attributes of both paths are the same afterwards, as the QP's own are.
void take_alternate_path(QpBody& body) {
  body.attr.ah = body.attr.alt_ah;
  body.attr.pkey_index = body.attr.alt_pkey_index;
  body.attr.port_num = body.attr.alt_port_num;
  body.attr.timeout = body.attr.alt_timeout;
  body.paths.path = body.paths.alternate->path;
}

}  // namespace rocemu::device
