/* Requests about memory beyond REG_MR, and what else of the verbs' interface came with them. All of
 * it follows the rules of control.h; handles are those of the same connection. */
#ifndef ROCEMU_VERBS_SHIM_ABI_MEMORY_H
#define ROCEMU_VERBS_SHIM_ABI_MEMORY_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rocemu_memory_op {
  ROCEMU_OP_REREG_MR = 32,
  ROCEMU_OP_ALLOC_MW = 33,
  ROCEMU_OP_DEALLOC_MW = 34,    /* rocemu_handle_message */
  ROCEMU_OP_ALLOC_NULL_MR = 35, /* request: rocemu_handle_message with the PD */
  ROCEMU_OP_ALLOC_DM = 36,
  ROCEMU_OP_FREE_DM = 37, /* rocemu_handle_message; EBUSY while regions of it are registered */
  ROCEMU_OP_REG_DM_MR = 38,
  ROCEMU_OP_CHECK_PREFETCH = 39,
  ROCEMU_OP_RESIZE_CQ = 40,
  ROCEMU_OP_QUERY_DEVICE_EX = 41, /* request: header alone */
  ROCEMU_OP_MODERATE_CQ = 47,     /* 42 to 46: import.h */
  ROCEMU_OP_REG_FILE_MR = 52,
};

/* ---- REREG_MR ---- reply: rocemu_reg_mr_reply, with the keys it has always had. EINVAL as for
 * REG_MR; EBUSY while windows are bound to the region; EOPNOTSUPP for null regions and those of
 * device memory. Members that `flags` does not name are not looked at. */
struct rocemu_rereg_mr {
  struct rocemu_header header;
  uint32_t mr;
  uint32_t flags; /* enum ibv_rereg_mr_flags */
  uint32_t pd;
  uint32_t access; /* enum ibv_access_flags */
  uint64_t address;
  uint64_t length_bytes;
  uint64_t iova;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_rereg_mr, 64);

/* ---- REG_FILE_MR ---- as REG_MR, with one descriptor: a file of tmpfs or hugetlbfs, open for
 * reading and writing, that the program has mapped shared at `address` from `file_offset_bytes` on.
 * The NIC maps it, too, and reaches the memory there until the region goes, whatever the program
 * has at its addresses meanwhile. DEREG_MR and REREG_MR as for REG_MR. EINVAL as for REG_MR, for
 * other files, for on-demand regions, when the NIC maps as much as it may, or when it is to reach
 * all memory in another way: REG_MR still serves. */
struct rocemu_reg_file_mr {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t access; /* enum ibv_access_flags */
  uint64_t address;
  uint64_t length_bytes;
  uint64_t iova;
  uint64_t file_offset_bytes;
  uint64_t file_device; /* st_dev and st_ino of the file that is meant: the descriptor is the */
  uint64_t file_inode;  /* program's own, and may be another file's by the time it is sent */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_reg_file_mr, 80);

/* ---- ALLOC_MW ---- reply: rocemu_reg_mr_reply, where `mr` is the window's handle and lkey is 0.
 * EINVAL no such type; ENOMEM as many as max_mw are there. */
struct rocemu_alloc_mw {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t type; /* enum ibv_mw_type */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_alloc_mw, 32);

/* ---- ALLOC_DM ---- reply: rocemu_alloc_dm_reply with one descriptor, the memory's memfd. EINVAL
 * no length or more than max_dm_size, alignment over a page; ENOMEM other device memory takes up
 * too much of max_dm_size. */
struct rocemu_alloc_dm {
  struct rocemu_header header;
  uint64_t length_bytes;
  uint32_t log_align;
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_alloc_dm, 40);

struct rocemu_alloc_dm_reply {
  struct rocemu_header header;
  uint32_t dm;
  uint32_t reserved;
  uint64_t memory_bytes; /* size of the memfd */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_alloc_dm_reply, 40);

/* ---- REG_DM_MR ---- reply: rocemu_reg_mr_reply. EINVAL as for REG_MR, beyond the memory's end, or
 * without IBV_ACCESS_ZERO_BASED. */
struct rocemu_reg_dm_mr {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t dm;
  uint32_t access;
  uint32_t reserved;
  uint64_t offset_bytes;
  uint64_t length_bytes;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_reg_dm_mr, 56);

/* ---- CHECK_PREFETCH ---- reply: rocemu_check_prefetch_reply. For one element of ibv_advise_mr(3):
 * ENOENT no on-demand region of this program and PD has the key; EFAULT outside of the region;
 * EPERM to be written, but registered without local write. */
struct rocemu_check_prefetch {
  struct rocemu_header header;
  uint32_t pd;
  uint32_t lkey;
  uint64_t iova;
  uint64_t length_bytes;
  uint32_t for_writing; /* 0 or 1 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_check_prefetch, 56);

struct rocemu_check_prefetch_reply {
  struct rocemu_header header;
  uint64_t address; /* in the program */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_check_prefetch_reply, 32);

/* ---- RESIZE_CQ ---- reply: rocemu_create_cq_reply with one descriptor, the new memfd. It holds
 * the completions that the program has not taken, and the consumer index 0; the NIC uses the old
 * one no more. The program takes none meanwhile; an `arm` that it writes to the old memory during
 * the call it writes to the new one as well. EINVAL cqe 0, over max_cqe, or fewer than there are
 * completions. */
struct rocemu_resize_cq {
  struct rocemu_header header;
  uint32_t cq;
  uint32_t cqe;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_resize_cq, 32);

/* ---- MODERATE_CQ ---- events are held back until `count` completions are there or `period_us` has
 * passed since the first; either being 0 turns that off. Reply: rocemu_handle_message. */
struct rocemu_moderate_cq {
  struct rocemu_header header;
  uint32_t cq;
  uint16_t count;
  uint16_t period_us;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_moderate_cq, 32);

/* ---- QUERY_DEVICE_EX ---- what struct ibv_device_attr_ex has beyond QUERY_DEVICE. */
struct rocemu_device_attr_ex {
  struct rocemu_header header;
  uint64_t max_dm_size;
  uint64_t odp_general_caps; /* enum ibv_odp_general_caps */
  uint32_t rc_odp_caps;      /* enum ibv_odp_transport_cap_bits */
  uint32_t uc_odp_caps;
  uint32_t ud_odp_caps;
  uint32_t xrc_odp_caps;
  uint16_t max_cq_count; /* for MODERATE_CQ */
  uint16_t max_cq_period_us;
  uint32_t rate_limit_qpts; /* for LIMIT_QP_RATE: bit N for enum ibv_qp_type N */
  uint32_t min_rate_kbps;
  uint32_t max_rate_kbps;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_device_attr_ex, 72);

#ifdef __cplusplus
}
#endif
#endif
