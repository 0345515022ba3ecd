// What links with impairments do with the frames they judge.
#pragma once

#include "dpdk_io/port/port.h"
#include "impairment/link.h"

struct rte_mbuf;

namespace rocemu::dpdk_io {

DropReason reason_of(impairment::Loss loss);

// The frame as the arrival changes it: in place when nobody else holds it, else a copy, for which
// one reference is given up. nullptr, and nothing given up, when there is no buffer for the copy.
rte_mbuf* corrupted(rte_mbuf* frame, const impairment::Arrival& arrival);

}  // namespace rocemu::dpdk_io
