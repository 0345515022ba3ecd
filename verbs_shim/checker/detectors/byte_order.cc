// byte-order: a key or address that is wrong as it is, and right with its bytes swapped or its
// halves exchanged. Looked at when a request has failed for want of the right to reach memory; what
// the NIC knows of peers in other processes is elsewhere.
#include <array>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

struct Spelling {
  const char* how;
  uint64_t value;
};

std::array<Spelling, 2> spellings(uint64_t address) {
  return {{{"with its bytes swapped", __builtin_bswap64(address)},
           {"with its halves exchanged", address << 32 | address >> 32}}};
}

bool covers(const MemoryRegion& region, uint64_t address, uint64_t bytes) {
  return bytes <= region.bytes && address >= region.iova &&
         address - region.iova <= region.bytes - bytes;
}

class ByteOrder : public Detector {
 public:
  ByteOrder() : Detector("byte-order", kSends | kReceives) {}

  void on_send_done(const Call& call, QueuePair& qp, Request& request, const ibv_wc* wc) override {
    if (wc == nullptr) return;
    if (wc->status == IBV_WC_LOC_PROT_ERR) look_at_sges(call, qp, request);
    if (wc->status == IBV_WC_REM_ACCESS_ERR) look_at_rkey(call, qp, request);
  }

  void on_receive_done(const Call& call, QueuePair* qp, SharedReceiveQueue* srq, Request& request,
                       const ibv_wc* wc, bool is_sure) override {
    if (wc == nullptr || wc->status != IBV_WC_LOC_PROT_ERR || !is_sure) return;
    look_at_sges(call, qp != nullptr ? static_cast<Object&>(*qp) : *srq, request);
  }

 private:
  void look_at_sges(const Call& call, const Object& queue, const Request& request) {
    for (const ibv_sge& sge : request.sges) {
      const auto region = queue.context->find_region(sge.lkey);
      if (region == nullptr) {
        const auto meant = queue.context->find_region(__builtin_bswap32(sge.lkey));
        if (meant != nullptr)
          tell(call, queue, request, "lkey", hex(sge.lkey), "with its bytes swapped", *meant);
        continue;
      }
      if (covers(*region, sge.addr, sge.length)) continue;
      for (const Spelling& other : spellings(sge.addr)) {
        if (covers(*region, other.value, sge.length))
          tell(call, queue, request, "address", hex(sge.addr), other.how, *region);
      }
    }
  }

  // Looks for the region that a swapped rkey means, where the peer is in this process, too, on
  // whichever device.
  void look_at_rkey(const Call& call, const Object& queue, const Request& request) {
    for (const auto& object : model().all()) {
      if (object->kind != ROCEMU_CHECK_MR) continue;
      const auto& region = static_cast<const MemoryRegion&>(*object);
      if (!covers(region, request.remote_address, 1)) continue;
      if (region.rkey == request.rkey) return;
      if (region.rkey == __builtin_bswap32(request.rkey))
        return tell(call, queue, request, "rkey", hex(request.rkey), "with its bytes swapped",
                    region);
    }
  }

  void tell(const Call& call, const Object& queue, const Request& request, const char* what,
            const std::string& value, const char* how, const MemoryRegion& meant) {
    if (!is_new(call)) return;
    Finding finding;
    finding.sentence = "The request with wr_id " + hex(request.wr_id) + " of " + queue.name() +
                       " has failed, and its " + what + " " + value + " is that of " +
                       meant.name() + " " + how + ".";
    finding.why =
        "Keys and addresses are in the host's order in verbs. What one side sends in network "
        "order, "
        "or as two halves, has to be put back by the other; where both forget it, or a key happens "
        "to be the same both ways, it works.";
    finding.advice = "Convert it once on each side, with htonl and ntohl or htobe64 and be64toh.";
    finding.objects = {queue.name(), meant.name()};
    finding.related = {{"the request was posted here", request.posted_at, request.posted_by},
                       {"the memory was registered here", meant.made_at, meant.made_by}};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_byte_order() { return std::make_unique<ByteOrder>(); }

}  // namespace rocemu::check
