/* The preload library, which stands before /dev/infiniband/rdma_cm, tells the checker of connection
 * management, which no verb shows. Without a checker it tells nobody.
 */
#ifndef ROCEMU_VERBS_SHIM_ABI_CM_WATCH_H
#define ROCEMU_VERBS_SHIM_ABI_CM_WATCH_H

#include <stdint.h>

#include "verbs_shim/abi/check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called in the program's thread, with no lock held. `channel_fd` is an event channel's descriptor.
 */
struct rocemu_cm_hooks {
  /* rdma_get_cm_event is about to block, and does no longer: also when the thread is cancelled. */
  void (*waiting)(rocemu_check_at at, int channel_fd);
  void (*waited)(int channel_fd);
  /* The channel is about to be closed. */
  void (*channel_closing)(rocemu_check_at at, int channel_fd);
  /* rdma_listen has succeeded. `refused`: how many requests of clients whom the same program had
   * served at this port by an earlier listener were refused since that one went. */
  void (*listening)(rocemu_check_at at, uint32_t refused);
};

/* `hooks` are kept by reference; null for nobody. */
void rocemu_preload_tell_of_cm_v1(const struct rocemu_cm_hooks* hooks);
#define ROCEMU_PRELOAD_TELL_OF_CM "rocemu_preload_tell_of_cm_v1"

#ifdef __cplusplus
}
#endif
#endif
