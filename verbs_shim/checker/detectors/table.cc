#include "verbs_shim/checker/detectors/table.h"

#include "verbs_shim/checker/detectors/makers.h"

namespace rocemu::check {

std::span<const DetectorRow> detector_table() {
  static constexpr DetectorRow kRows[] = {
      {"ah-freed-early", make_ah_freed_early},
      {"byte-order", make_byte_order},
      {"channel-in-use", make_channel_in_use},
      {"cq-too-small", make_cq_too_small},
      {"destroyed-undrained", make_destroyed_undrained},
      {"empty-event", make_empty_event},
      {"fork", make_fork},
      {"leaks", make_leaks},
      {"limits", make_limits},
      {"listen-gap", make_listen_gap},
      {"lost-wakeup", make_lost_wakeup},
      {"memory-gone", make_memory_gone},
      {"post-in-error", make_post_in_error},
      {"queue-full", make_queue_full},
      {"receive-buffer-touched", make_receive_buffer_touched},
      {"send-buffer-changed", make_send_buffer_changed},
      {"ud-headroom", make_ud_headroom},
      {"unacked-events", make_unacked_events},
      {"unaligned-atomic", make_unaligned_atomic},
      // These ask the NIC.
      {"byte-order", make_byte_order_of_keys},
      {"byte-order", make_byte_order_of_peer},
      {"gid-index", make_gid_index},
      {"key-guessing", make_key_guessing},
      {"memory-gone", make_memory_gone_at_peer},
      {"mtu-mismatch", make_mtu_mismatch},
      {"psn-mismatch", make_psn_mismatch},
      {"rd-atomic-mismatch", make_rd_atomic_mismatch},
      {"receive-too-late", make_receive_too_late},
      {"remote-race", make_remote_race},
      {"timeout-mismatch", make_timeout_mismatch},
      // It writes over completions: the last.
      {"error-fields-read", make_error_fields_read},
  };
  return kRows;
}

}  // namespace rocemu::check
