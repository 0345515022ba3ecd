// ah-freed-early: an address handle is destroyed while a UD send request that names it is
// outstanding.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class AhFreedEarly : public Detector {
 public:
  AhFreedEarly() : Detector("ah-freed-early", kNothing) {}

  void on_going(const Call& call, Object& object) override {
    if (object.kind != ROCEMU_CHECK_AH) return;
    std::vector<std::shared_ptr<QueuePair>> qps;
    {
      std::shared_lock lock(object.context->tables_lock);
      for (const auto& [qpn, qp] : object.context->qps) {
        if (qp->type == IBV_QPT_UD) qps.push_back(qp);
      }
    }
    for (const auto& qp : qps) look(call, object, *qp);
  }

 private:
  // An unsignaled request may be known to be over by other means.
  void look(const Call& call, const Object& ah, QueuePair& qp) {
    Request user;
    bool is_used = false;
    {
      std::lock_guard lock(qp.sends.lock);
      for (size_t i = 0; qp.sends.is_tracked && i < qp.sends.size() && !is_used; ++i) {
        const Request& request = qp.sends.at(i);
        is_used = request.is_signaled && request.ah == ah.handle;
        if (is_used) user = request;
      }
    }
    if (is_used && is_new(call)) tell(call, ah, qp, user);
  }

  void tell(const Call& call, const Object& ah, const QueuePair& qp, const Request& user) {
    Finding finding;
    finding.sentence = ah.name() + " is destroyed while the send request with wr_id " +
                       hex(user.wr_id) + " of " + qp.name() + ", which names it, is outstanding.";
    finding.why =
        "An address handle is the NIC's until the requests that name it are complete (IBTA "
        "11.2.2.5). "
        "Providers that copy the address into the request don't mind; those that hand the NIC a "
        "handle send to wherever its next user points.";
    finding.advice = "Destroy it when the completion has been polled, or keep it for the peer.";
    finding.objects = {ah.name(), qp.name()};
    finding.related = {{"the request was posted here", user.posted_at, user.posted_by},
                       {"the address handle was made here", ah.made_at, ah.made_by}};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_ah_freed_early() { return std::make_unique<AhFreedEarly>(); }

}  // namespace rocemu::check
