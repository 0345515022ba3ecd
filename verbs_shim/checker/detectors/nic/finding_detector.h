// A detector that passes on what the NIC found: races, and keys that were refused.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs_shim/abi/inspect.h"
#include "verbs_shim/checker/detectors/detector.h"
#include "verbs_shim/checker/detectors/nic/open_accesses.h"

namespace rocemu::check {

class FindingDetector : public Detector {
 public:
  // `kinds`: bits by enum rocemu_nic_finding_kind, which no other detector has.
  FindingDetector(const char* name, unsigned kinds);
  ~FindingDetector() override;

  void on_send_posting(const Call&, QueuePair& qp, Request& request) override;
  void on_modifying(const Call&, QueuePair& qp, const ibv_qp_attr& attr, int mask) final;
  void on_going(const Call&, Object& object) final;
  void on_failures_polled(const Call&, CompletionQueue& cq) final;
  void on_end(const Model& model) final;

 protected:
  // `qp` is this program's, `request` its own if it is known.
  virtual void pass_on(QueuePair& qp, const rocemu_nic_finding& found,
                       const RemoteRequest& request) = 0;
  // A request of the QP's that was posted lately: by its wr_id, or by what it reaches; the last
  // one.
  RemoteRequest find_request(QueuePair& qp, uint64_t wr_id);
  RemoteRequest find_request(QueuePair& qp, uint32_t rkey, uint64_t address);
  // These two are about the request's place, or the one where the QP was made.
  bool is_new_at(const QueuePair& qp, const RemoteRequest& request);
  void report_at(const QueuePair& qp, const RemoteRequest& request, const Finding& finding);

 private:
  void collect(Context& context, bool now);

  const unsigned kinds_;
};

}  // namespace rocemu::check
