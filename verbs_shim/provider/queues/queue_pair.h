#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/context/protection_domain.h"
#include "verbs_shim/provider/rings/work_ring.h"

namespace rocemu::provider {

struct Scaling;
namespace checked {
struct QueuePairRecord;
}

// The attributes that a QP was last moved to INIT with; no mask when something else was done to it
// since.
struct MoveToInit {
  rocemu_qp_attr attr = {};
  int mask = 0;
};

// Send requests that are being built, between wr_start and wr_complete.
struct Building {
  uint8_t* request = nullptr;                      // null before the first one and after an error
  int error = 0;                                   // the first one
  int (*ordinary_complete)(ibv_qp_ex*) = nullptr;  // asked_posts.h; null until it is needed
};

struct QueuePair {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
    // libibverbs may be newer than the header: room for its larger ibv_qp_ex and for the private
    // members of struct verbs_qp behind it.
    uint8_t room[384];
  } verbs;

  Mutex send_lock;  // held from wr_start to wr_complete or wr_abort
  Mutex recv_lock;
  WorkRing send_ring;
  WorkRing recv_ring;
  const rocemu_queue_header* header = nullptr;
  ibv_qp_cap cap = {};
  uint32_t max_tso_header = 0;
  uint32_t doorbell = 0;
  bool signal_all = false;

  MoveToInit init;
  Building building;

  // Set for a QP over a table of receive queues, which has no queues of its own.
  Scaling* scaling = nullptr;
  uint32_t flows = 0;
  // Set for one that does the work of a receive work queue, of which its events are then.
  ibv_wq* work_queue = nullptr;

  QueueMemory memory;
  checked::QueuePairRecord* checked = nullptr;  // the checker's (checked/)
};

inline QueuePair& to_queue_pair(ibv_qp* qp) { return *reinterpret_cast<QueuePair*>(qp); }
inline QueuePair& to_queue_pair(ibv_qp_ex* qp) { return *reinterpret_cast<QueuePair*>(qp); }

// driver.cc: says in libibverbs' own part of `qp` that ibv_qp_to_qp_ex() may hand it out.
void mark_extended(ibv_qp* qp);

// driver.cc: where libibverbs' ibv_qp_ex has wr_flush, which the header may lack; null when it is
// too old to have it.
void* place_of_flush(QueuePair& queue);

// queue_pair.cc: removes the completions of `qp` that the program has not polled.
void discard_completions(ibv_qp* qp);

// post.cc: 0, or EINVAL in the states that take no send requests (IBTA o10-2, ibv_post_send(3):
// those before RTS). In the error states they are taken, and completed as flushed.
int check_can_send(const QueuePair& queue);
// Fills in what an IBV_WR_BIND_MW of a window of type 2 has beyond its opcode. Only the low 8 bits
// of `rkey` count, as for mlx5 and irdma. False when there is no such window, or no region to bind
// it to.
bool set_binding(const ibv_qp& qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info& info,
                 rocemu_send_wqe& wqe);
// Fills in what an IBV_WR_TSO has beyond its opcode, and puts its headers into `slot`. False when
// they are shorter than Ethernet's or longer than the QP was made for.
bool set_segmentation(const QueuePair& queue, const void* headers, uint16_t headers_bytes,
                      uint16_t segment_bytes, rocemu_send_wqe& wqe, uint8_t* slot);
// ibv_post_send, ibv_bind_mw and ibv_post_recv, for callers that hold the queue's lock.
int post_send_locked(QueuePair& queue, ibv_send_wr* request, ibv_send_wr** bad);
int bind_mw_locked(QueuePair& queue, ibv_mw* mw, ibv_mw_bind* bind);
int post_recv_locked(QueuePair& queue, ibv_recv_wr* request, ibv_recv_wr** bad);
// Hands the NIC what was claimed on the send ring.
void submit_sends(QueuePair& queue);

// work_request.cc: the functions that ibv_qp_ex holds. `ops` are IBV_QP_EX_WITH_ flags.
uint64_t offered_send_ops(QueuePair& queue, const rocemu_device_attr& limits);
void set_work_request_functions(ibv_qp_ex& qp, uint64_t ops);

// What rdma-core has from 45 on, where the header may be older.
inline constexpr uint64_t kWithFlush = uint64_t{1} << 11;  // IBV_QP_EX_WITH_FLUSH
inline constexpr auto kFlushOpcode = static_cast<ibv_wr_opcode>(ROCEMU_WR_FLUSH);  // IBV_WR_FLUSH
using FlushFunction = void(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, size_t bytes,
                           uint8_t placement, uint8_t selectivity);
FlushFunction wr_flush;
// `qp` has a place for it.
void set_flush_function(ibv_qp_ex& qp, FlushFunction* function);

}  // namespace rocemu::provider
