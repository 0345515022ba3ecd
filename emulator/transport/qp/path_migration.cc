#include "emulator/transport/qp/path_migration.h"

#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

void PathMigration::enter(MigrationState state) {
  state_ = state;
  watches_ = state != MigrationState::migrated || left_;
}

void PathMigration::rearm(const QpAttributes& attributes) {
  if (attributes.alternate == nullptr) return;
  if (place_ == nullptr) place_ = std::make_unique<Path>();
  left_ = false;
  refused_ = false;
  enter(MigrationState::rearm);
}

bool PathMigration::migrate(QpContext& context) {
  QpAttributes& attributes = context.attributes;
  if (state_ != MigrationState::armed || attributes.alternate == nullptr) return false;
  *place_ = attributes.path;
  left_ = true;
  attributes.path = attributes.alternate->path;
  attributes.timeout = attributes.alternate->timeout;
  enter(MigrationState::migrated);
  context.qp.on_path_migrated();
  context.events.on_qp_event(context.qpn, QpEvent::path_migrated);
  return true;
}

void PathMigration::on_path_used(bool mig_req) {
  if (state_ == MigrationState::migrated) {
    left_ = false;
    enter(MigrationState::migrated);
  } else if (state_ == MigrationState::rearm && !mig_req) {
    enter(MigrationState::armed);
  }
}

void PathMigration::refuse(const QpContext& context) {
  if (refused_) return;
  refused_ = true;
  context.events.on_qp_event(context.qpn, QpEvent::path_migration_error);
}

}  // namespace rocemu::transport
