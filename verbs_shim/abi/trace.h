/* Control messages about traces (docs/seeing.md). As control.h has it.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_TRACE_H
#define ROCEMU_VERBS_SHIM_ABI_TRACE_H

#include <stdint.h>

#include "verbs_shim/abi/control.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROCEMU_TRACE_FILTER_MAX = 512 }; /* NUL included */

/* ---- TRACE_START ---- control connection. One descriptor: an empty regular file, open for
 * writing, which the NIC writes to from now on: it opens no file of its own accord. The filter is
 * KEY=VALUE,... with the keys device, qp and program, with a NUL behind it and up to the end.
 * max_bytes 0: the NIC's own bound. Reply: header alone. EINVAL the filter is none; ENODEV no such
 * device; EBADF no such file as is wanted; EALREADY the NIC is traced. */
struct rocemu_trace_start {
  struct rocemu_header header;
  uint64_t max_bytes;
  char filter[ROCEMU_TRACE_FILTER_MAX];
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_trace_start, 544);

/* ---- TRACE_STOP ---- control connection; request: header alone. The reply comes when the file is
 * complete. ENOENT the NIC is not traced; EALREADY the trace is ending. */
struct rocemu_trace_reply {
  struct rocemu_header header;
  uint64_t written_bytes;
  uint64_t lost_records; /* for want of room, here or in the file */
  uint32_t write_error;  /* errno of a write that failed, or 0 */
  uint32_t reserved;
};
ROCEMU_ABI_ASSERT_SIZE(rocemu_trace_reply, 48);

#ifdef __cplusplus
}
#endif
#endif
