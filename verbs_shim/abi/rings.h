/* Queue memory that a program and the NIC share.
 *
 * Each piece is a memfd made and sealed (no shrink, no grow) by rocemud. Producer and consumer
 * indices are free-running 32-bit counters: an entry stands at index & (entries - 1), a ring holds
 * producer - consumer entries. The side that writes an index publishes it with a release store
 * after the entries; the other reads it with an acquire load. Everything a program can write here
 * is hostile to the NIC: it copies an entry out, then checks the copy.
 *
 * `sleeping`, `qp_state`, `arm` and `sleepers` each stand against a word that the other side
 * writes: who writes one has a full fence, or sequentially consistent accesses, before it reads
 * that other word. `core`, `crowded`, `turn_behind`, `stamps_posts`, `stamps_polls`, `poller_core`
 * and `overrun` are hints: they publish nothing, are read by relaxed loads, and one that is seen
 * late costs time, or a stamp, and nothing else.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_RINGS_H
#define ROCEMU_VERBS_SHIM_ABI_RINGS_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the engine page: one for the daemon, read-only for programs ---- */
enum rocemu_engine_state {
  ROCEMU_ENGINE_SLEEPS = 1,
  /* Posts are to fail on request (fault.h): from its next post on, a program asks before each. */
  ROCEMU_ENGINE_WANTS_ATTENTION = 2,
};
struct rocemu_engine_page {
  uint32_t magic; /* ROCEMU_ABI_MAGIC */
  uint32_t abi_version;
  /* enum rocemu_engine_state. ROCEMU_ENGINE_SLEEPS is set while the engine sleeps or is about to:
   * after ringing a doorbell and a full fence, a program that reads it writes 8 bytes (uint64_t 1)
   * to the wake eventfd. */
  uint32_t sleeping __attribute__((aligned(64)));
  /* The number of the core the engine runs on, and 1: a program that polls in vain there keeps it
   * from its work, and yields. */
  uint32_t core;
  /* 1 while the NIC has work for all cores that there are: a program that would yield sleeps for a
   * moment instead, as it can keep no core without slowing down what it waits for. */
  uint32_t crowded;
  /* 0 unless the engine has been at work for a while without a pause: then it changes with each of
   * its turns. */
  uint32_t turn_behind;
  uint8_t pad[48];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_engine_page, 128);

/* ---- the doorbell page: one for each context ----
 * Slot s has bit s%64 of word s/64%64 of group s/4096; the word's own bit is in the group's
 * summary. To ring: publish the producer index; atomic OR into the word (release); atomic OR into
 * the summary (release); full fence; look at `sleeping`. The NIC clears a summary bit, then takes
 * (exchanges with 0) the word it stands for. The words of the first 448 slots of a group share the
 * summary's line. */
enum { ROCEMU_DOORBELL_GROUP_SLOTS = 4096, ROCEMU_DOORBELL_SLOTS_MAX = 65536 };
struct rocemu_doorbell_group {
  uint64_t summary __attribute__((aligned(64)));
  uint64_t words[ROCEMU_DOORBELL_GROUP_SLOTS / 64];
  uint64_t pad[7];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_doorbell_group, 576);
struct rocemu_doorbell_page {
  struct rocemu_doorbell_group groups[ROCEMU_DOORBELL_SLOTS_MAX / ROCEMU_DOORBELL_GROUP_SLOTS];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_doorbell_page, 9216);

/* ---- a QP's memory: this header at offset 0, then the SQ, then the RQ ----
 * The indices run on for the life of the QP: at a transition to RESET the NIC moves both consumers
 * up to the producers. The program posts nothing meanwhile. */
struct rocemu_queue_header {
  uint32_t sq_producer __attribute__((aligned(64))); /* program */
  uint32_t sq_consumer
      __attribute__((aligned(64))); /* NIC: entries before it may be written again */
  uint32_t rq_producer __attribute__((aligned(64))); /* program */
  uint32_t rq_consumer __attribute__((aligned(64))); /* NIC */
  /* NIC: enum ibv_qp_state as the engine sees it. post_send rings the doorbell always. post_recv
   * publishes, fences, and rings only if it reads IBV_QPS_ERR here (its receives are then flushed).
   */
  uint32_t qp_state __attribute__((aligned(64)));
  /* NIC: 1 while it wants to know when requests are posted. The program then sets post_stamp in
   * each to CLOCK_MONOTONIC in units of 64 ns, the lower 32 bits of it, and 1 where they are 0. */
  uint32_t stamps_posts;
  uint8_t pad[56];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_queue_header, 320);

struct rocemu_sge {
  uint64_t address;
  uint32_t length_bytes;
  uint32_t lkey;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_sge, 16);

enum rocemu_send_flags {
  ROCEMU_SEND_FENCE = 1,    /* the values of enum ibv_send_flags */
  ROCEMU_SEND_SIGNALED = 2, /* set by the provider for sq_sig_all as well */
  ROCEMU_SEND_SOLICITED = 4,
  ROCEMU_SEND_INLINE = 8, /* inline_bytes of payload follow the WQE instead of SGEs */
  /* In a SEND or WRITE: the payload that the one SGE names also stands in compare_add and swap.
   * That spares the NIC the look into the program's memory; the SGE is checked all the same. */
  ROCEMU_SEND_INLINE_WQE_DATA = 16,
};
enum { ROCEMU_INLINE_WQE_DATA_MAX = 16 };

/* Opcodes that <infiniband/verbs.h> has not had for long. */
enum { ROCEMU_WR_FLUSH = 14 };

/* One send work request: this, then num_sge rocemu_sge or inline_bytes of payload.
 * The stride of the ring is at least 64 + max(16 * max_send_sge + max_tso_header, max_inline_data).
 * What is inline stays in its slot until sq_consumer has passed it. */
struct rocemu_send_wqe {
  uint64_t wr_id;
  uint8_t opcode; /* enum ibv_wr_opcode */
  uint8_t flags;  /* enum rocemu_send_flags */
  uint16_t num_sge;
  uint32_t imm_or_rkey; /* immediate in network order, or the rkey to invalidate */
  uint64_t remote_address;
  uint32_t rkey;
  uint32_t inline_bytes;
  uint64_t compare_add;
  uint64_t swap;
  /* IBV_WR_BIND_MW: imm_or_rkey is the region's lkey, remote_address and compare_add are where the
   * window begins and its length, rkey is the window's new key, swap its access flags.
   * IBV_WR_ATOMIC_WRITE inline: its 8 bytes are compare_add, and not behind the WQE.
   * IBV_WR_FLUSH, which has no payload: compare_add is the range's length, swap what it is for
   * (enum ibv_placement_type) and, from bit 8 on, of what (enum ibv_selectivity_level). IBV_WR_TSO,
   * which has no inline payload: rkey is the maximum segment size, inline_bytes the length of the
   * headers, which stand behind the room for max_send_sge SGEs. */
  uint32_t ah;          /* UD: handle; else 0 */
  uint32_t remote_qpn;  /* UD: QPN; XRC: number of the remote SRQ; else 0 */
  uint32_t remote_qkey; /* UD */
  uint32_t post_stamp;  /* see rocemu_queue_header; 0: none */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_send_wqe, 64);

/* ---- an SRQ's memory: the header of a QP's, of which rq_producer and rq_consumer are used, then
 * the ring ---- */

/* One receive work request: this, then num_sge rocemu_sge. Stride at least 16 + 16 * max_recv_sge.
 */
struct rocemu_recv_wqe {
  uint64_t wr_id;
  uint32_t num_sge;
  uint32_t post_stamp; /* as in rocemu_send_wqe */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_recv_wqe, 16);

/* ---- a CQ's memory: this header at offset 0, the ring at ROCEMU_CQ_RING_OFFSET ---- */
enum rocemu_cq_arm {
  ROCEMU_CQ_UNARMED = 0,
  ROCEMU_CQ_ARM_SOLICITED = 1, /* an event at the next solicited or unsuccessful completion */
  ROCEMU_CQ_ARM_NEXT = 2,      /* an event at the next completion */
};
enum { ROCEMU_CQ_RING_OFFSET = 256 };
struct rocemu_cq_header {
  uint32_t producer __attribute__((aligned(64))); /* NIC */
  /* NIC: 1 while it wants to know when completions are taken. The program then sets timestamp_ns of
   * each, before it publishes `consumer`, to CLOCK_MONOTONIC. */
  uint32_t stamps_polls;
  uint32_t consumer __attribute__((aligned(64))); /* program */
  /* Program: enum rocemu_cq_arm, then a full fence. The NIC exchanges it with 0 when it sends the
   * event. Arming never lowers a value that is still there. */
  uint32_t arm __attribute__((aligned(64)));
  /* Program: the number of the core, and 1, where this CQ was last found empty. An engine on the
   * same one yields when it has answered. */
  uint32_t poller_core;
  /* Program: 1 before it sleeps until `producer` changes (futex(2), without FUTEX_PRIVATE_FLAG).
   * The NIC takes the word (exchanges it with 0), publishes `producer`, and looks at the word once
   * more; if it was set before or after, it wakes as many sleepers as it has shown completions, up
   * to 16, and sets the word again where that may not have been all. So none sleeps over what was
   * shown after it has looked. */
  uint32_t sleepers;
  uint32_t overrun __attribute__((aligned(64))); /* NIC: 1 when a completion found the ring full */
  uint8_t pad[60];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cq_header, 256);

/* One completion. That of a small receive has the payload inline: the provider, which takes it,
 * copies inline_bytes of inline_data to inline_address, which is the program's own. */
struct rocemu_cqe {
  uint64_t wr_id;
  uint32_t qp_num;
  uint8_t status;    /* enum ibv_wc_status */
  uint8_t opcode;    /* enum ibv_wc_opcode */
  uint16_t wc_flags; /* enum ibv_wc_flags */
  uint32_t byte_length;
  uint32_t imm_or_rkey; /* immediate in network order, or the invalidated rkey */
  uint32_t src_qp;
  uint8_t sl;
  /* The provider's own: it sets 1 in entries of a QP that was destroyed or reset, and skips them.
   */
  uint8_t dead;
  uint8_t inline_bytes;  /* 0: the payload, if any, is in place */
  uint8_t has_flow_tag;  /* 1: of a raw packet, and src_qp is the tag of its flow */
  uint64_t timestamp_ns; /* CLOCK_MONOTONIC when the NIC completed it */
  /* With IBV_WC_TM_MATCH: the tag of the message, whose app_ctx is in src_qp. */
  uint64_t inline_address;
  uint8_t inline_data[16];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_cqe, 64);

#ifdef __cplusplus
}
#endif
#endif
