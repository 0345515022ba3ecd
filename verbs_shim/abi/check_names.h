// The names of all checks, as ROCEMU_CHECK, --check and suppressions take them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rocemu {

inline constexpr auto kCheckNames = std::to_array<std::string_view>({"send-buffer-changed",
                                                                     "receive-buffer-touched",
                                                                     "memory-gone",
                                                                     "destroyed-undrained",
                                                                     "queue-full",
                                                                     "error-fields-read",
                                                                     "lost-wakeup",
                                                                     "cq-too-small",
                                                                     "receive-too-late",
                                                                     "mtu-mismatch",
                                                                     "rd-atomic-mismatch",
                                                                     "timeout-mismatch",
                                                                     "psn-mismatch",
                                                                     "remote-race",
                                                                     "gid-index",
                                                                     "unacked-events",
                                                                     "post-in-error",
                                                                     "ud-headroom",
                                                                     "limits",
                                                                     "fork",
                                                                     "byte-order",
                                                                     "unaligned-atomic",
                                                                     "ah-freed-early",
                                                                     "key-guessing",
                                                                     "channel-in-use",
                                                                     "empty-event",
                                                                     "listen-gap",
                                                                     "leaks"});

inline bool is_check_name(std::string_view name) {
  return std::ranges::find(kCheckNames, name) != kCheckNames.end();
}

}  // namespace rocemu
