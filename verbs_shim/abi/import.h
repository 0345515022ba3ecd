/* Contexts, protection domains, regions and device memory of another context
 * (ibv_import_device(3)).
 *
 * libibverbs passes the device's descriptor on to another context or process. So that descriptor is
 * a ticket: a sealed memfd that names the context it belongs to. A process that has the ticket may
 * join that context, and then import what was made there. */
#ifndef ROCEMU_VERBS_SHIM_ABI_IMPORT_H
#define ROCEMU_VERBS_SHIM_ABI_IMPORT_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rocemu_import_op {
  ROCEMU_OP_CONTEXT_TICKET = 42, /* request and reply: rocemu_handle_message, with the ticket */
  ROCEMU_OP_JOIN_CONTEXT = 43,
  ROCEMU_OP_IMPORT_PD = 44, /* rocemu_handle_message: there, and of the new name for it here */
  ROCEMU_OP_IMPORT_MR = 45,
  ROCEMU_OP_IMPORT_DM = 46, /* request: rocemu_handle_message; reply: rocemu_import_dm_reply */
};

#define ROCEMU_TICKET_MAGIC "ROCEMUTK"

/* The content of the ticket, all of it. */
struct rocemu_context_ticket {
  char magic[8];
  uint32_t abi_version;
  uint32_t device_index;
  uint32_t device_major; /* the character device that the descriptor looks like */
  uint32_t device_minor;
  uint64_t token[2];
  uint64_t reserved[3];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_context_ticket, 64);

/* ---- JOIN_CONTEXT ---- reply: rocemu_handle_message. ENOENT no such context on this device (any
 * more); EALREADY joined before. */
struct rocemu_join_context {
  struct rocemu_header header;
  uint64_t token[2];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_join_context, 40);

/* ---- IMPORT_PD, IMPORT_MR, IMPORT_DM ---- EINVAL no context was joined, it is gone, or has no
 * such object. DEALLOC_PD and FREE_DM give up imported objects, which outlive the joined context,
 * but for regions. */
struct rocemu_import_mr {
  struct rocemu_header header;
  uint32_t pd; /* imported before, and the region's */
  uint32_t mr; /* handle there */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_import_mr, 32);

struct rocemu_import_mr_reply {
  struct rocemu_header header;
  uint32_t lkey;
  uint32_t rkey;
  uint64_t length_bytes;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_import_mr_reply, 40);

/* With one descriptor, the memory's memfd. */
struct rocemu_import_dm_reply {
  struct rocemu_header header;
  uint32_t dm;
  uint32_t reserved;
  uint64_t length_bytes; /* as it was allocated */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_import_dm_reply, 40);

#ifdef __cplusplus
}
#endif
#endif
