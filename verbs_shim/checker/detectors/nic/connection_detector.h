// A detector that looks at a connected QP together with its peer, as the NIC knows both. It is
// asked for its judgement when the program is about to destroy or reset the QP or has seen it fail,
// and at the end; it says so once for each place where QPs are connected.
#pragma once

#include <mutex>
#include <optional>

#include "verbs_shim/abi/inspect.h"
#include "verbs_shim/checker/detectors/detector.h"

namespace rocemu::check {

// The places where a QP was last moved to RTR and to RTS.
struct Connected {
  PlaceId rtr_at = kNoPlace;
  PlaceId rts_at = kNoPlace;
  pid_t rtr_by = 0;
  pid_t rts_by = 0;
};

// The note with each QP; a detector that remembers more derives its own from this.
struct ConnectionNote : Note {
  std::mutex lock;  // guards the two fields below; a leaf
  Connected connected;
  bool looked_at_failure = false;
};

class ConnectionDetector : public Detector {
 public:
  explicit ConnectionDetector(const char* name, unsigned wants = kNothing)
      : Detector(name, wants) {}

  void on_modifying(const Call&, QueuePair& qp, const ibv_qp_attr& attr, int mask) final;
  void on_modified(const Call& call, QueuePair& qp, const ibv_qp_attr& attr, int mask,
                   ibv_qp_state before, int error) final;
  void on_going(const Call&, Object& object) final;
  void on_failures_polled(const Call&, CompletionQueue& cq) final;
  void on_end(const Model& model) final;

 protected:
  // Returns the finding when something is wrong with the connection. The QP was moved to RTR;
  // without ROCEMU_INSPECTED_MET in `facts` nothing of the peer is known.
  virtual std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) = 0;
  // The place to report: as a rule where the program moved the QP to RTR.
  virtual PlaceId place_of(const Connected& connected) const { return connected.rtr_at; }
  // ibv_modify_qp was refused.
  virtual void on_modify_refused(const Call&, QueuePair&, const ibv_qp_attr&, int /*mask*/,
                                 int /*error*/) {}
  // The QP is in RESET.
  virtual void on_reset(QueuePair&) {}
  virtual ConnectionNote& note_of(QueuePair& qp) { return note<ConnectionNote>(qp); }

 private:
  void look(QueuePair& qp);
};

// Returns what the NIC says of the QP; nothing when the NIC does not inspect, or when the QP is of
// a kind that has no connection.
std::optional<rocemu_inspect_qp_reply> inspect(QueuePair& qp);

}  // namespace rocemu::check
