// The functions that make the detectors; each detector's class is in the file of its name.
#pragma once

#include <memory>

#include "verbs_shim/checker/detectors/detector.h"

namespace rocemu::check {

std::unique_ptr<Detector> make_ah_freed_early();
std::unique_ptr<Detector> make_byte_order();
std::unique_ptr<Detector> make_channel_in_use();
std::unique_ptr<Detector> make_cq_too_small();
std::unique_ptr<Detector> make_destroyed_undrained();
std::unique_ptr<Detector> make_empty_event();
std::unique_ptr<Detector> make_error_fields_read();
std::unique_ptr<Detector> make_fork();
std::unique_ptr<Detector> make_leaks();
std::unique_ptr<Detector> make_limits();
std::unique_ptr<Detector> make_listen_gap();
std::unique_ptr<Detector> make_lost_wakeup();
std::unique_ptr<Detector> make_memory_gone();
std::unique_ptr<Detector> make_post_in_error();
std::unique_ptr<Detector> make_queue_full();
std::unique_ptr<Detector> make_receive_buffer_touched();
std::unique_ptr<Detector> make_send_buffer_changed();
std::unique_ptr<Detector> make_ud_headroom();
std::unique_ptr<Detector> make_unacked_events();
std::unique_ptr<Detector> make_unaligned_atomic();

// nic/
std::unique_ptr<Detector> make_byte_order_of_keys();
std::unique_ptr<Detector> make_byte_order_of_peer();
std::unique_ptr<Detector> make_gid_index();
std::unique_ptr<Detector> make_key_guessing();
std::unique_ptr<Detector> make_memory_gone_at_peer();
std::unique_ptr<Detector> make_mtu_mismatch();
std::unique_ptr<Detector> make_psn_mismatch();
std::unique_ptr<Detector> make_rd_atomic_mismatch();
std::unique_ptr<Detector> make_receive_too_late();
std::unique_ptr<Detector> make_remote_race();
std::unique_ptr<Detector> make_timeout_mismatch();

}  // namespace rocemu::check
