#include "verbs_shim/checker/detectors/nic/open_accesses.h"

#include <algorithm>
#include <iterator>

namespace rocemu::check {

namespace {

constexpr uint64_t kWordBytes = 8;

// A message, or a word that the peer may wait for.
bool tells_the_peer(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
         opcode == IBV_WR_ATOMIC_WRITE;
}

bool writes(ibv_wr_opcode opcode) { return opcode != IBV_WR_RDMA_READ; }

bool overlap(const OpenAccess& a, const OpenAccess& b) {
  const uint64_t from_b = a.request.address - b.request.address;
  const uint64_t from_a = b.request.address - a.request.address;
  return from_b < b.bytes || from_a < a.bytes;
}

}  // namespace

OpenAccesses::Key OpenAccesses::key_of(QueuePair& qp, uint32_t rkey) {
  Key key = {{}, rkey};
  std::lock_guard lock(qp.attr_lock);
  std::copy(std::begin(qp.attr.ah_attr.grh.dgid.raw), std::end(qp.attr.ah_attr.grh.dgid.raw),
            key.gid.begin());
  return key;
}

// Keys that nothing is under way for make room. To look for them costs a while, so where all keys
// are in use that is done once for as many requests as there are keys.
bool OpenAccesses::has_room_for(const Key& key) {
  if (buckets_.size() < kMaxKeys || buckets_.contains(key)) return true;
  if (refused_++ % kMaxKeys != 0) return false;
  std::erase_if(buckets_, [](const auto& entry) { return entry.second.accesses.empty(); });
  if (buckets_.size() >= kMaxKeys) return false;
  refused_ = 0;
  return true;
}

std::optional<OpenAccess> OpenAccesses::on_posting(QueuePair& qp, const Request& request) {
  const bool reaches = request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_READ ||
                       request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (!reaches && !tells_the_peer(request.opcode)) return std::nullopt;
  OpenAccess access = {{request.wr_id, request.remote_address, request.rkey, request.opcode,
                        request.posted_at, request.posted_by},
                       &qp,
                       request.index,
                       0};
  for (const ibv_sge& sge : request.sges) access.bytes += sge.length;
  std::lock_guard lock(lock_);
  std::optional<OpenAccess> conflict;
  if (reaches && access.bytes > kWordBytes && qp.sends.is_tracked) {
    const Key key = key_of(qp, request.rkey);
    if (!has_room_for(key)) return std::nullopt;
    Bucket& bucket = buckets_[key];
    if (bucket.first == nullptr) bucket.first = &qp;
    bucket.of_several = bucket.of_several || bucket.first != &qp;
    if (bucket.of_several) conflict = find_conflict(bucket, access);
    if (bucket.accesses.size() < kMaxOfKey) bucket.accesses.push_back(access);
  }
  // Only QPs that have accesses are looked up here.
  if (tells_the_peer(request.opcode) && !buckets_.empty()) told_[&qp] = request.index + 1;
  return conflict;
}

std::optional<OpenAccess> OpenAccesses::find_conflict(const Bucket& bucket,
                                                      const OpenAccess& access) const {
  for (const OpenAccess& other : bucket.accesses) {
    if (other.qp == access.qp || !overlap(other, access)) continue;
    if (!writes(other.request.opcode) && !writes(access.request.opcode)) continue;
    const auto told = told_.find(other.qp);
    if (told != told_.end() && told->second > other.index) continue;
    // Nothing is known of a queue whose lock is taken or whose completions could not be followed.
    std::unique_lock lock(other.qp->sends.lock, std::try_to_lock);
    if (lock && other.qp->sends.is_tracked) return other;
  }
  return std::nullopt;
}

void OpenAccesses::on_done(QueuePair& qp, uint64_t index, uint32_t rkey) {
  std::lock_guard lock(lock_);
  const auto found = buckets_.find(key_of(qp, rkey));
  if (found == buckets_.end()) return;
  std::vector<OpenAccess>& accesses = found->second.accesses;
  const auto done = std::find_if(accesses.begin(), accesses.end(), [&](const OpenAccess& access) {
    return access.qp == &qp && access.index == index;
  });
  if (done != accesses.end()) accesses.erase(done);
}

void OpenAccesses::forget(const QueuePair& qp) {
  std::lock_guard lock(lock_);
  told_.erase(&qp);
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    std::vector<OpenAccess>& accesses = bucket->second.accesses;
    std::erase_if(accesses, [&qp](const OpenAccess& access) { return access.qp == &qp; });
    bucket = accesses.empty() ? buckets_.erase(bucket) : std::next(bucket);
  }
}

}  // namespace rocemu::check
