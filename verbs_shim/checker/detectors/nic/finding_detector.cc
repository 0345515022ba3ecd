#include "verbs_shim/checker/detectors/nic/finding_detector.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <unordered_map>

#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {

namespace {

// Requests that reach into a peer's memory, the last ones of a QP.
struct RemoteRequests final : Note {
  static constexpr size_t kKept = 128;
  std::mutex lock;  // a leaf
  std::array<RemoteRequest, kKept> ring;
  size_t count = 0;

  template <typename Fits>
  RemoteRequest find_last(Fits fits) {
    std::lock_guard guard(lock);
    for (size_t i = 0; i < std::min(count, kKept); ++i)
      if (const RemoteRequest& request = ring[(count - 1 - i) % kKept]; fits(request))
        return request;
    return {};
  }
};

bool reaches_into_memory(ibv_wr_opcode opcode) {
  if (opcode == kFlush) return true;
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_WRITE:
      return true;
    default:
      return false;
  }
}

// The NIC's findings that no detector has taken yet: each detector takes its own kinds. The NIC is
// asked once in an event, by the detector whose turn comes first.
class Inbox {
 public:
  std::vector<rocemu_nic_finding> take(Context& context, unsigned kinds, bool now) {
    fetch(context, now);
    std::lock_guard guard(lock_);
    std::vector<rocemu_nic_finding> taken;
    std::vector<rocemu_nic_finding>& all = waiting_[&context];
    std::erase_if(all, [&](const rocemu_nic_finding& found) {
      const bool mine = (kinds >> found.kind & 1) != 0;
      if (mine) taken.push_back(found);
      return mine;
    });
    return taken;
  }

  // Kinds that some detector asks for.
  std::atomic<unsigned> wanted = 0;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kOneEvent{1};
  static constexpr size_t kMax = 256;

  void fetch(Context& context, bool now) {
    if (nobody_inspects_.load(std::memory_order_relaxed)) return;
    static thread_local const Context* asked = nullptr;
    static thread_local Clock::time_point asked_when;
    const Clock::time_point time = Clock::now();
    if (!now && asked == &context && time - asked_when < kOneEvent) return;
    asked = &context;
    asked_when = time;
    uint32_t count = ROCEMU_FINDINGS_MAX;
    while (count == ROCEMU_FINDINGS_MAX) {
      rocemu_header request = {};
      struct Request {
        rocemu_header header;
      } message = {request};
      rocemu_take_findings_reply reply = {};
      const int error = context.control(ROCEMU_OP_TAKE_FINDINGS, message, reply);
      if (error == EOPNOTSUPP) nobody_inspects_ = true;
      if (error != 0) return;
      count = std::min<uint32_t>(reply.count, ROCEMU_FINDINGS_MAX);
      std::lock_guard guard(lock_);
      std::vector<rocemu_nic_finding>& all = waiting_[&context];
      for (uint32_t i = 0; i < count; ++i) {
        const rocemu_nic_finding& found = reply.findings[i];
        const bool asked_for = found.kind < ROCEMU_FOUND_KINDS && (wanted >> found.kind & 1) != 0;
        if (asked_for && all.size() < kMax) all.push_back(found);
      }
    }
  }

  std::atomic<bool> nobody_inspects_ = false;
  std::mutex lock_;
  std::unordered_map<const Context*, std::vector<rocemu_nic_finding>> waiting_;
};

// Outlives the program's end, when detectors are asked for the last time.
Inbox& inbox() {
  static Inbox* const the_inbox = new Inbox;
  return *the_inbox;
}

}  // namespace

FindingDetector::FindingDetector(const char* name, unsigned kinds)
    : Detector(name, kSends), kinds_(kinds) {
  inbox().wanted |= kinds;
}

FindingDetector::~FindingDetector() = default;

void FindingDetector::on_send_posting(const Call&, QueuePair& qp, Request& request) {
  if (!reaches_into_memory(request.opcode)) return;
  auto& requests = note<RemoteRequests>(qp);
  std::lock_guard guard(requests.lock);
  requests.ring[requests.count++ % RemoteRequests::kKept] = {
      request.wr_id,  request.remote_address, request.rkey,
      request.opcode, request.posted_at,      request.posted_by};
}

RemoteRequest FindingDetector::find_request(QueuePair& qp, uint64_t wr_id) {
  return note<RemoteRequests>(qp).find_last(
      [wr_id](const RemoteRequest& request) { return request.wr_id == wr_id; });
}

RemoteRequest FindingDetector::find_request(QueuePair& qp, uint32_t rkey, uint64_t address) {
  return note<RemoteRequests>(qp).find_last([rkey, address](const RemoteRequest& request) {
    return request.rkey == rkey && request.address == address;
  });
}

bool FindingDetector::is_new_at(const QueuePair& qp, const RemoteRequest& request) {
  return is_new(request.posted_at != kNoPlace ? request.posted_at : qp.made_at);
}

void FindingDetector::report_at(const QueuePair& qp, const RemoteRequest& request,
                                const Finding& finding) {
  if (request.posted_at != kNoPlace) {
    report(request.posted_at, "ibv_post_send", request.posted_by, finding);
  } else {
    report(qp.made_at, qp.made_with, qp.made_by, finding);
  }
}

void FindingDetector::collect(Context& context, bool now) {
  for (const rocemu_nic_finding& found : inbox().take(context, kinds_, now)) {
    const std::shared_ptr<QueuePair> qp = context.find_qp(found.qp_num);
    if (qp == nullptr) continue;
    const bool known = (found.flags & ROCEMU_FOUND_REQUEST_KNOWN) != 0;
    pass_on(*qp, found,
            known ? find_request(*qp, found.wr_id) : find_request(*qp, found.rkey, found.address));
  }
}

void FindingDetector::on_modifying(const Call&, QueuePair& qp, const ibv_qp_attr& attr, int mask) {
  if ((mask & IBV_QP_STATE) == 0) return;
  if (attr.qp_state == IBV_QPS_RESET || attr.qp_state == IBV_QPS_ERR) collect(*qp.context, false);
}

void FindingDetector::on_going(const Call&, Object& object) {
  if (object.kind == ROCEMU_CHECK_QP) collect(*object.context, false);
}

void FindingDetector::on_failures_polled(const Call&, CompletionQueue& cq) {
  collect(*cq.context, false);
}

void FindingDetector::on_end(const Model& model) {
  for (const auto& object : model.all())
    if (object->kind == ROCEMU_CHECK_CONTEXT && !object->gone)
      collect(static_cast<Context&>(*object), true);
}

}  // namespace rocemu::check
