/* Questions of a program's checker to a NIC that inspects (rocemud --check): control messages as
 * control.h has them. Any other NIC answers EOPNOTSUPP. */
#ifndef ROCEMU_VERBS_SHIM_ABI_INSPECT_H
#define ROCEMU_VERBS_SHIM_ABI_INSPECT_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rocemu_inspection_op {
  ROCEMU_OP_INSPECT_QP = 60,    /* request: rocemu_handle_message */
  ROCEMU_OP_TAKE_FINDINGS = 61, /* request: header alone */
  ROCEMU_OP_WAS_WRITTEN = 62,
};

/* ---- INSPECT_QP ---- a QP with its peer, both as they were when the first packet of the
 * connection came to one of them, or when they got to RTS after that, and counts since the QP was
 * last reset. The members from `own` on are zero without MET: nothing has come, or the peer is none
 * of this NIC's. */
enum rocemu_inspection_flags {
  ROCEMU_INSPECTED_MET = 1,
  ROCEMU_INSPECTED_PEER_BEGAN = 2,   /* the packet with the peer's first PSN has come here */
  ROCEMU_INSPECTED_BEGAN = 4,        /* and this end's to the peer */
  ROCEMU_INSPECTED_RNR_EXCEEDED = 8, /* this end gave up for want of receives at the peer */
};

struct rocemu_inspect_qp_reply {
  struct rocemu_header header;
  uint32_t qp_num;
  uint32_t flags; /* enum rocemu_inspection_flags */
  uint32_t receives_taken;
  uint32_t receives_missing_before_first; /* RNR NAKs, or messages dropped (UC, UD) */
  uint32_t receives_missing;
  uint32_t swapped_peer; /* the QPN meant, when only with its bytes swapped there is one; else 0 */
  uint64_t waited_before_first_ns; /* as long as those RNR NAKs asked the peer to wait */
  uint64_t waited_ns;
  struct rocemu_qp_attr own; /* without states */
  struct rocemu_qp_attr peer;
  uint8_t own_gid[16]; /* the address that this end sends from */
  uint8_t peer_gid[16];
  uint32_t peer_qp_num;
  uint32_t peer_device; /* its index */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_inspect_qp_reply, 344);

/* ---- TAKE_FINDINGS ---- what was found about this context's QPs since the last time. */
enum rocemu_nic_finding_kind {
  ROCEMU_FOUND_RACE = 0,
  ROCEMU_FOUND_PROCESSOR_RACE = 1,
  ROCEMU_FOUND_KEY_GONE = 2,
  ROCEMU_FOUND_MEMORY_UNMAPPED = 3,
  ROCEMU_FOUND_KEY_SWAPPED = 4,
  ROCEMU_FOUND_ADDRESS_SWAPPED = 5,
  ROCEMU_FOUND_OWN_KEY = 6,
  ROCEMU_FOUND_OTHER_DOMAIN = 7,
  ROCEMU_FOUND_KEY_NEVER_GIVEN = 8,
  ROCEMU_FOUND_KINDS
};
enum rocemu_nic_finding_flags {
  ROCEMU_FOUND_AS_OWNER = 1, /* the program owns the memory; else it posted the request */
  ROCEMU_FOUND_REQUEST_KNOWN = 2,
  ROCEMU_FOUND_OTHER_IS_MINE = 4, /* race: both requests are of this context */
};

struct rocemu_nic_finding {
  uint32_t kind;         /* enum rocemu_nic_finding_kind */
  uint32_t flags;        /* enum rocemu_nic_finding_flags */
  uint32_t qp_num;       /* this context's QP */
  uint32_t other_qp_num; /* the peer; race: the QP that posted the other request */
  uint32_t other_device; /* its index */
  uint32_t rkey;         /* the rkey that was used */
  uint64_t wr_id;        /* with REQUEST_KNOWN; only for a race and a processor's race */
  uint64_t other_wr_id;  /* race only */
  uint32_t opcode;       /* enum ibv_wr_opcode of the request, with REQUEST_KNOWN */
  uint32_t other_opcode; /* race only */
  uint64_t address;      /* as requests name it */
  uint64_t length_bytes;
  uint64_t left;  /* processor's race: the value that the atomic before left */
  uint64_t found; /* processor's race: the value that this atomic found */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_nic_finding, 80);

enum { ROCEMU_FINDINGS_MAX = 24 }; /* a reply fits the mailbox */
struct rocemu_take_findings_reply {
  struct rocemu_header header;
  uint32_t count; /* ROCEMU_FINDINGS_MAX: there may be more */
  uint32_t reserved;
  struct rocemu_nic_finding findings[ROCEMU_FINDINGS_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_take_findings_reply, 1952);

/* ---- WAS_WRITTEN ---- whether a peer has ever had the NIC write, by RDMA and atomics, to these
 * bytes of the program's memory, by this context's regions: 0 only where that is certain. */
struct rocemu_was_written {
  struct rocemu_header header;
  uint64_t address; /* in the program */
  uint64_t bytes;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_was_written, 40);

struct rocemu_was_written_reply {
  struct rocemu_header header;
  uint32_t was_written; /* 0 or 1 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_was_written_reply, 32);

#ifdef __cplusplus
}
#endif
#endif
