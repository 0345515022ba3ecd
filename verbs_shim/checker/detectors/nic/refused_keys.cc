// key-guessing, byte-order and memory-gone as the peer's NIC sees them: why it refused a key or an
// address.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/finding_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

// A FLUSH without bytes is one of the region as a whole, or of none of it.
std::string used_text(QueuePair& qp, const rocemu_nic_finding& found) {
  const std::string what = found.length_bytes == 0 ? "a region"
                                                   : count_of(found.length_bytes, "byte", "bytes") +
                                                         " at " + hex(found.address);
  return qp.name() + " reached for " + what + " with rkey " + hex(found.rkey) + " at " +
         peer_text(found.other_qp_num, found.other_device);
}

class KeyGuessing final : public FindingDetector {
 public:
  KeyGuessing()
      : FindingDetector("key-guessing", 1u << ROCEMU_FOUND_OWN_KEY |
                                            1u << ROCEMU_FOUND_OTHER_DOMAIN |
                                            1u << ROCEMU_FOUND_KEY_NEVER_GIVEN) {}

 private:
  void pass_on(QueuePair& qp, const rocemu_nic_finding& found,
               const RemoteRequest& request) override {
    if (!is_new_at(qp, request)) return;
    const bool as_owner = (found.flags & ROCEMU_FOUND_AS_OWNER) != 0;
    Finding finding;
    finding.sentence = (as_owner ? "The peer of " + qp.name() + " used rkey " + hex(found.rkey)
                                 : used_text(qp, found)) +
                       ", " + what(found) + ".";
    finding.why =
        "Keys mean nothing but to the NIC that gave them, and each NIC numbers them in its own way "
        "(IBTA vol 1, 10.6.3.3). A key that is made up, left from earlier or another memory's is "
        "valid by chance on one NIC, for the same or for other bytes, and ends the connection with "
        "IBV_WC_REM_ACCESS_ERR on the next.";
    finding.advice =
        "Use the rkey that ibv_reg_mr returned at the owner of the memory, for the QP's protection "
        "domain, and send it to the peer together with the address.";
    finding.objects = {qp.name()};
    report_at(qp, request, finding);
  }

  static const char* what(const rocemu_nic_finding& found) {
    switch (found.kind) {
      case ROCEMU_FOUND_OWN_KEY:
        return "which is a key of this end's own memory, not of the peer's";
      case ROCEMU_FOUND_OTHER_DOMAIN:
        return "which is a key of another protection domain than the QP's";
      default:
        return "which nobody was ever given";
    }
  }
};

class ByteOrderOfKeys final : public FindingDetector {
 public:
  ByteOrderOfKeys()
      : FindingDetector("byte-order",
                        1u << ROCEMU_FOUND_KEY_SWAPPED | 1u << ROCEMU_FOUND_ADDRESS_SWAPPED) {}

 private:
  void pass_on(QueuePair& qp, const rocemu_nic_finding& found,
               const RemoteRequest& request) override {
    if (!is_new_at(qp, request)) return;
    const char* const what = found.kind == ROCEMU_FOUND_KEY_SWAPPED ? "rkey" : "address";
    const bool as_owner = (found.flags & ROCEMU_FOUND_AS_OWNER) != 0;
    Finding finding;
    finding.sentence = (as_owner ? "The peer of " + qp.name() + " reached for " +
                                       hex(found.address) + " with rkey " + hex(found.rkey)
                                 : used_text(qp, found)) +
                       ", and that " + what + " is valid with its bytes or halves swapped.";
    finding.why =
        "remote_addr and rkey are in the host's byte order (ibv_post_send(3)); the NIC swaps them "
        "itself. Between hosts of one kind it works when both ends forget to swap, and on a NIC "
        "whose numbers read the same both ways.";
    finding.advice =
        "Send keys and addresses in network order and convert them at the receiver: ntohl and "
        "be64toh, once.";
    finding.objects = {qp.name()};
    report_at(qp, request, finding);
  }
};

class MemoryGoneAtPeer final : public FindingDetector {
 public:
  MemoryGoneAtPeer()
      : FindingDetector("memory-gone",
                        1u << ROCEMU_FOUND_KEY_GONE | 1u << ROCEMU_FOUND_MEMORY_UNMAPPED) {}

  void on_gone(const Call& call, Object& object) override {
    if (object.kind != ROCEMU_CHECK_MR) return;
    const auto& region = static_cast<MemoryRegion&>(object);
    std::lock_guard guard(lock_);
    gone_[gone_count_++ % gone_.size()] = {region.rkey,   region.address, region.bytes,
                                           call.place(),  call.thread(),  region.made_at,
                                           region.made_by};
  }

 private:
  struct Gone {
    uint32_t rkey = 0;
    uint64_t address = 0;
    uint64_t bytes = 0;
    PlaceId at = kNoPlace;
    pid_t by = 0;
    PlaceId made_at = kNoPlace;
    pid_t made_by = 0;
  };

  void pass_on(QueuePair& qp, const rocemu_nic_finding& found,
               const RemoteRequest& request) override {
    if (found.kind == ROCEMU_FOUND_MEMORY_UNMAPPED) return unmapped(qp, found);
    if ((found.flags & ROCEMU_FOUND_AS_OWNER) != 0) return deregistered(qp, found);
    if (!is_new_at(qp, request)) return;
    Finding finding;
    finding.sentence = used_text(qp, found) + ", whose region or window had gone there.";
    finding.why = kWhy;
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    report_at(qp, request, finding);
  }

  void deregistered(QueuePair& qp, const rocemu_nic_finding& found) {
    const Gone gone = find(found.rkey);
    const PlaceId place = gone.at != kNoPlace ? gone.at : qp.made_at;
    if (!is_new(place)) return;
    Finding finding;
    const std::string what = gone.at == kNoPlace
                                 ? "The region or window with rkey " + hex(found.rkey)
                                 : "The region with rkey " + hex(found.rkey) + " (" +
                                       count_of(gone.bytes, "byte", "bytes") + " at " +
                                       hex(gone.address) + ")";
    finding.sentence = what + " had gone when the peer of " + qp.name() + ", " +
                       peer_text(found.other_qp_num, found.other_device) + ", still used it.";
    finding.why = kWhy;
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    if (gone.made_at != kNoPlace)
      finding.related.push_back({"the region was registered here", gone.made_at, gone.made_by});
    if (gone.at != kNoPlace) {
      report(place, "ibv_dereg_mr", gone.by, finding);
    } else {
      report(place, qp.made_with, qp.made_by, finding);
    }
  }

  void unmapped(QueuePair& qp, const rocemu_nic_finding& found) {
    if (!is_new(qp.made_at)) return;
    const bool as_owner = (found.flags & ROCEMU_FOUND_AS_OWNER) != 0;
    Finding finding;
    finding.sentence = as_owner
                           ? "The peer of " + qp.name() + ", " +
                                 peer_text(found.other_qp_num, found.other_device) +
                                 ", reached for memory of a registered region that this program "
                                 "has unmapped."
                           : qp.name() + " reached for registered memory at " +
                                 peer_text(found.other_qp_num, found.other_device) +
                                 " that its program has unmapped.";
    finding.why =
        "A region has to stay mapped until it is deregistered (ibv_reg_mr(3)). NICs pin its pages, "
        "and then write to memory that nobody sees any more, or that somebody else has got.";
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    report(qp.made_at, qp.made_with, qp.made_by, finding);
  }

  Gone find(uint32_t rkey) {
    std::lock_guard guard(lock_);
    for (size_t i = 0; i < std::min(gone_count_, gone_.size()); ++i)
      if (const Gone& gone = gone_[(gone_count_ - 1 - i) % gone_.size()]; gone.rkey == rkey)
        return gone;
    return {};
  }

  static constexpr const char* kWhy =
      "The key ends with the registration: a request that comes later ends the connection with "
      "IBV_WC_REM_ACCESS_ERR (IBTA vol 1, 9.7.4.1.5), and when the key or the memory was given to "
      "somebody else meanwhile, it reaches that. NICs whose keys are forgotten late, and requests "
      "that are early, hide it.";
  static constexpr const char* kAdvice =
      "Let the peer say that it is done with the memory before ibv_dereg_mr, munmap or free; or "
      "destroy the QP first.";

  std::mutex lock_;  // a leaf
  std::array<Gone, 256> gone_;
  size_t gone_count_ = 0;
};

}  // namespace

std::unique_ptr<Detector> make_key_guessing() { return std::make_unique<KeyGuessing>(); }
std::unique_ptr<Detector> make_byte_order_of_keys() { return std::make_unique<ByteOrderOfKeys>(); }
std::unique_ptr<Detector> make_memory_gone_at_peer() {
  return std::make_unique<MemoryGoneAtPeer>();
}

}  // namespace rocemu::check
