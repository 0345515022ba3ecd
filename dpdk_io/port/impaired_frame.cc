#include "dpdk_io/port/impaired_frame.h"

#include <rte_mbuf.h>

#include "dpdk_io/port/frame_pool.h"

namespace rocemu::dpdk_io {

DropReason reason_of(impairment::Loss loss) {
  switch (loss) {
    case impairment::Loss::outage:
      return DropReason::impairment_outage;
    case impairment::Loss::queue_full:
      return DropReason::impairment_queue;
    case impairment::Loss::random:
    case impairment::Loss::none:
      break;
  }
  return DropReason::impairment_loss;
}

rte_mbuf* corrupted(rte_mbuf* frame, const impairment::Arrival& arrival) {
  rte_mbuf* own = frame;
  if (rte_mbuf_refcnt_read(frame) > 1) {
    own = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
    if (own == nullptr) return nullptr;
    FramePool::free(frame);
  }
  impairment::corrupt(arrival, {rte_pktmbuf_mtod(own, std::byte*), own->data_len});
  return own;
}

}  // namespace rocemu::dpdk_io
