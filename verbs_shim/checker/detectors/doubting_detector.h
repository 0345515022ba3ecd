// A detector that reports at once what is sure, and the rest when the NIC has said that no peer has
// had to do with it: at the next event in which it can be asked.
#pragma once

#include "verbs_shim/checker/detectors/detector.h"
#include "verbs_shim/checker/memory/nic_writes.h"
#include "verbs_shim/checker/memory/suspects.h"

namespace rocemu::check {

class DoubtingDetector : public Detector {
 public:
  using Detector::Detector;

  void on_made(const Call&, Object&) override { settle(); }
  void on_going(const Call&, Object&) override { settle(); }
  void on_modifying(const Call&, QueuePair&, const ibv_qp_attr&, int) override { settle(); }
  void on_failures_polled(const Call&, CompletionQueue&) override { settle(); }
  void on_cq_event_taken(const Call&, CompletionQueue&) override { settle(); }
  void on_end(const Model&) override { settle(); }

 protected:
  // The caller has asked is_new() for the place.
  void report_or_doubt(Suspect suspect) {
    if (may_be_written_by_peers(model(), suspect.spans)) {
      suspects_.add(std::move(suspect));
    } else {
      show(suspect);
    }
  }

 private:
  void settle() {
    for (const Suspect& suspect : suspects_.settle(model())) show(suspect);
  }
  void show(const Suspect& suspect) {
    report(suspect.place, suspect.verb, suspect.thread, suspect.finding);
  }

  Suspects suspects_;
};

}  // namespace rocemu::check
