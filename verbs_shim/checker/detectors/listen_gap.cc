// listen-gap: a program gives up its listener and listens at the same port anew, for the next
// connection of a client that it has served; the client came in between, and was refused. The NIC's
// connection manager has seen it.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class ListenGap : public Detector {
 public:
  ListenGap() : Detector("listen-gap", kNothing) {}

  void on_listening(const Call& call, uint32_t refused) override {
    if (refused == 0 || !is_new(call)) return;
    Finding finding;
    finding.sentence = "The program listens at a port where it has listened before, and refused " +
                       count_of(refused, "request", "requests") +
                       " of a client that it had served there, as nobody listened in between.";
    finding.why =
        "A request that finds no listener is rejected at once (IBTA 12.6.7, reason 8; for UD "
        "12.11.1), and the client hears RDMA_CM_EVENT_REJECTED or _UNREACHABLE. Which of the two "
        "is "
        "the quicker one depends on the machines, the network and the NIC.";
    finding.advice =
        "Keep the listener until no more connections are due, or make the new one before the old "
        "one goes, or tell the client when it may come.";
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_listen_gap() { return std::make_unique<ListenGap>(); }

}  // namespace rocemu::check
