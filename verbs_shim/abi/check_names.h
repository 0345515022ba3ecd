/* The names of all detectors, as ROCEMU_CHECK, --check and suppressions take them. */
#ifndef ROCEMU_VERBS_SHIM_ABI_CHECK_NAMES_H
#define ROCEMU_VERBS_SHIM_ABI_CHECK_NAMES_H

#define ROCEMU_CHECK_NAMES                                                                     \
  "send-buffer-changed", "receive-buffer-touched", "memory-gone", "destroyed-undrained",       \
      "queue-full", "error-fields-read", "lost-wakeup", "cq-too-small", "receive-too-late",    \
      "mtu-mismatch", "rd-atomic-mismatch", "timeout-mismatch", "psn-mismatch", "remote-race", \
      "gid-index", "unacked-events", "post-in-error", "ud-headroom", "limits", "fork",         \
      "byte-order", "unaligned-atomic", "ah-freed-early", "key-guessing", "channel-in-use",    \
      "empty-event", "listen-gap", "leaks"

#endif
