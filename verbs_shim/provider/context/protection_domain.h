// A protection domain, or a parent domain: a second object for a protection domain, which carries
// how the program wants memory for queues to be allocated (ibv_alloc_parent_domain(3)).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "verbs_shim/exchange/shared_memory.h"

namespace rocemu::provider {

struct ThreadDomain {
  ibv_td td;
  std::atomic<uint32_t> users;
};

struct ProtectionDomain {
  ibv_pd pd;
  // Parent domains of a protection domain; queues of a parent domain; QPs over tables of either.
  std::atomic<uint32_t> users;

  // These belong to a parent domain alone, and are null in others.
  ProtectionDomain* contained;
  ThreadDomain* thread_domain;
  decltype(ibv_parent_domain_init_attr::alloc) allocate;
  decltype(ibv_parent_domain_init_attr::free) release;
  void* allocation_context;
};

inline ProtectionDomain& to_domain(ibv_pd* pd) { return *reinterpret_cast<ProtectionDomain*>(pd); }

// The purpose of memory, as allocators are told it.
enum class QueueResource : uint64_t { kQueuePair = 1, kCompletionQueue = 2, kSharedReceive = 3 };

// A queue's memory: where it is mapped, and whose that place is.
class QueueMemory {
 public:
  // Maps a queue's memfd, of whole pages. When `pd` is a parent domain with allocators, at the
  // place that they give; and where the kernel cannot map it there (huge pages), at another one all
  // the same. `pd` may be null. 0 or an errno.
  int map(ibv_pd* pd, QueueResource resource, int fd, size_t bytes);
  // The same for memory that the NIC uses already: where the allocator has no place, at another
  // one.
  int map_anywhere(ibv_pd* pd, QueueResource resource, int fd, size_t bytes);
  void unmap();

  void* address() const { return memory_.address; }

 private:
  int map_at_own_place(ibv_pd* pd, QueueResource resource, int fd, size_t bytes);
  // To that of the allocator, where there is one. False when it has no memory.
  bool move_to_place(ibv_pd* pd, int fd);

  exchange::SharedMemory memory_;
  ProtectionDomain* domain_ = nullptr;  // a parent domain, which it is a user of
  void* place_ = nullptr;               // place that the allocator gave
  size_t place_bytes_ = 0;
  QueueResource resource_{};
};

}  // namespace rocemu::provider
