// RDMA WRITEs and READs of all QPs of the program that were posted and are not over, as far as the
// program knows: it has taken no completion that says so. Two of different QPs that reach the same
// bytes, and of which one writes, are in no order, however fast the NIC is.
//
// Left out, as they may be ordered or sound after all: one behind which a SEND or an immediate was
// posted on its QP, which tells the peer's program, and that may have told this one; accesses of at
// most 8 bytes, flags and words, which may be written again with the same value.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "verbs_shim/checker/model/objects.h"

namespace rocemu::check {

// A request by which a program reached into its peer's memory.
struct RemoteRequest {
  uint64_t wr_id = 0;
  uint64_t address = 0;
  uint32_t rkey = 0;
  ibv_wr_opcode opcode{};
  PlaceId posted_at = kNoPlace;  // kNoPlace: there is none
  pid_t posted_by = 0;
};

struct OpenAccess {
  RemoteRequest request;
  QueuePair* qp = nullptr;  // until forget()
  uint64_t index = 0;       // in its queue
  uint64_t bytes = 0;
};

// Thread-safe. With a queue locked, as it is in the events of posting and completing.
class OpenAccesses {
 public:
  // `qp`'s queue is locked. Answers an earlier access of another QP that conflicts, if there is
  // one.
  std::optional<OpenAccess> on_posting(QueuePair& qp, const Request& request);
  // The request is over, or was not posted after all.
  void on_done(QueuePair& qp, uint64_t index, uint32_t rkey);
  // The QP ends, or its queue was emptied.
  void forget(const QueuePair& qp);

 private:
  static constexpr size_t kMaxKeys = 4096;
  static constexpr size_t kMaxOfKey = 1024;

  // The memory that a key stands for is its device's.
  struct Key {
    std::array<uint8_t, 16> gid;
    uint32_t rkey;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.rkey * 31u + key.gid[15]; }
  };
  struct Bucket {
    std::vector<OpenAccess> accesses;
    const QueuePair* first = nullptr;
    bool of_several = false;  // QPs
  };
  bool has_room_for(const Key& key);
  static Key key_of(QueuePair& qp, uint32_t rkey);
  std::optional<OpenAccess> find_conflict(const Bucket& bucket, const OpenAccess& access) const;

  std::mutex lock_;
  std::unordered_map<Key, Bucket, Hash> buckets_;
  size_t refused_ = 0;  // accesses, for want of room, since keys were last given up
  // For each QP the index behind its last request that tells the peer's program something.
  std::unordered_map<const QueuePair*, uint64_t> told_;
};

}  // namespace rocemu::check
