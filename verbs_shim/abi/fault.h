/* Control messages about faults on request (docs/faults.md). As control.h has it.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_FAULT_H
#define ROCEMU_VERBS_SHIM_ABI_FAULT_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROCEMU_FAULT_TEXT_MAX = 512 }; /* NUL included */

/* ---- FAULT_ADD ---- control connection. The text is DEVICE WHAT [KEY=VALUE]... as in
 * docs/faults.md, with a NUL behind it and up to the end. Reply: rocemu_fault_reply. EINVAL it is
 * none; ENODEV no such device; ENOSPC there are too many; EOPNOTSUPP this NIC has none. */
struct rocemu_fault_add {
  struct rocemu_header header;
  char text[ROCEMU_FAULT_TEXT_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_fault_add, 536);

struct rocemu_fault_reply {
  struct rocemu_header header;
  uint32_t first_id; /* the text stands for `count` faults, whose ids follow each other */
  uint32_t count;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_fault_reply, 32);

/* ---- FAULT_CLEAR ---- control connection; rocemu_handle_message both ways: an id, or 0 for all
 * faults. ENOENT there is none of that id. */

/* ---- FAULT_LIST ---- control connection; request: header alone. The reply carries one memfd with
 * JSON text: an array with an object for each fault, numbers "id" and "strikes", strings "device",
 * "fault", "text" and "state" ("waiting", "active", "over"), and "quirks" where it is one of a
 * family's. */

/* ---- ASK_POST ---- asked before a post while the engine page says
 * ROCEMU_ENGINE_WANTS_ATTENTION. A status is what the post is to fail with; the reply without one
 * is rocemu_ask_post_reply. */
struct rocemu_ask_post {
  struct rocemu_header header;
  uint32_t qp_num;   /* 0: an SRQ */
  uint32_t receives; /* 1: to the receive queue; 0: to the send queue */
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_ask_post, 32);

struct rocemu_ask_post_reply {
  struct rocemu_header header;
  uint32_t ask_again; /* 0: posts need not ask any more */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_ask_post_reply, 32);

#ifdef __cplusplus
}
#endif
#endif
