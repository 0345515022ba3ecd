// A frame between two devices of one switch may owe its ICRC, as one between two virtual NICs owes
// its checksum: the CRC is neither made nor looked at where nobody sees it. It is paid before a
// frame is recorded, may be changed or lost on a link, leaves by a port, or is shown to anybody but
// the endpoint of a device. A frame that owes has one holder.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <span>

namespace rocemu::dpdk_io {

// Computes the ICRC of the datagram whose IP header comes first, and stores it at its end.
using StoreIcrc = void (*)(std::span<std::byte> l3);

// `l3_offset_bytes`, at most 127, says where the IP header is. A new frame owes nothing.
inline void owe_icrc(rte_mbuf* frame, size_t l3_offset_bytes) noexcept {
  frame->l2_len = l3_offset_bytes & 0x7f;
}

inline bool owes_icrc(const rte_mbuf* frame) noexcept { return frame->l2_len != 0; }

// For what a driver hands out: it may have left anything in the mbuf, at a peer's wish even, and a
// frame from outside owes nothing and is no run (run_mark.h).
inline void disclaim(rte_mbuf* frame) noexcept { frame->tx_offload = 0; }

inline void pay_icrc(rte_mbuf* frame, StoreIcrc store) noexcept {
  if (!owes_icrc(frame)) return;
  const std::span bytes(rte_pktmbuf_mtod(frame, std::byte*), size_t{frame->data_len});
  store(bytes.subspan(frame->l2_len));
  frame->l2_len = 0;
}

}  // namespace rocemu::dpdk_io
