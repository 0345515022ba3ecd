// Path migration of a connected QP (IBTA vol 1, 17.2.8): when it leaves its path for the alternate
// one, and what both ends tell each other of it by the BTH's MigReq.
//
//   MIGRATED --the program asks----------------------------------> REARM
//   REARM    --a packet of the peer with MigReq 0----------------> ARMED
//   ARMED    --retry_count is used up----------------------------> MIGRATED, on the alternate path
//            --the program asks----------------------------------> the same
//            --a packet with MigReq 1 over the alternate path----> the same
//
// 1. MIGRATED is the state of a QP that knows nothing of all this. What it sends has MigReq 1, what
//    it sends in the other states 0.
// 2. The peer that has not followed yet is still heard on the path that was left, as it may be,
//    until its first packet on the new one: an answer to it tells it to follow. Otherwise a peer
//    that alone sends, over UC above all, would never hear of it.
// 3. A packet with MigReq 1 that came over neither path asks for what is refused. The program hears
//    of that once each time it rearms: whoever can send packets is not to fill its event queue.
//
// A QP that is MIGRATED and whose peer has followed watches nothing: it pays for one look at
// watches() a packet.
#pragma once

#include <memory>

#include "emulator/transport/interface/attributes.h"

namespace rocemu::transport {

struct QpContext;

class PathMigration {
 public:
  MigrationState state() const { return state_; }
  bool migrated() const { return state_ == MigrationState::migrated; }
  // True when packets of the peer may change something here: responder/migrating_path.h.
  bool watches() const { return watches_; }
  // Null when none was left, or the peer has followed.
  const Path* left_path() const { return left_ ? place_.get() : nullptr; }

  // The program asks for REARM. Nothing happens without an alternate path.
  void rearm(const QpAttributes& attributes);
  // The alternate path becomes the path of `context`, its QP and the program are told. False: the
  // QP is not armed.
  bool migrate(QpContext& context);
  // A packet has come over the path.
  void on_path_used(bool mig_req);
  // A migration that the peer asks for is refused.
  void refuse(const QpContext& context);

 private:
  void enter(MigrationState state);

  MigrationState state_ = MigrationState::migrated;
  bool watches_ = false;
  bool refused_ = false;         // since the program asked for REARM
  bool left_ = false;            // the path in `place_`
  std::unique_ptr<Path> place_;  // made when the program rearms: a packet's arrival needs no memory
};

}  // namespace rocemu::transport
