#include "emulator/transport/qp/path_migration.h"

#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

void PathMigration::enter(MigrationState state) {
  state_ = state;
  watches_ = state != MigrationState::migrated || left_path_ != nullptr;
}

void PathMigration::rearm(const QpAttributes& attributes) {
  if (attributes.alternate == nullptr) return;
  left_path_ = nullptr;
  refused_ = false;
  enter(MigrationState::rearm);
}

bool PathMigration::migrate(QpContext& context) {
  QpAttributes& attributes = context.attributes;
  if (state_ != MigrationState::armed || attributes.alternate == nullptr) return false;
  left_path_ = std::make_unique<const Path>(attributes.path);
  attributes.path = attributes.alternate->path;
  attributes.timeout = attributes.alternate->timeout;
  enter(MigrationState::migrated);
  context.qp.on_path_migrated();
  context.events.on_qp_event(context.qpn, QpEvent::path_migrated);
  return true;
}

void PathMigration::on_path_used(bool mig_req) {
  if (state_ == MigrationState::migrated) {
    left_path_ = nullptr;
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
