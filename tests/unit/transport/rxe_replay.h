// One of our QPs in the place of one end of a captured connection between two Linux rxe ends
// (tests/data/rxe-pcaps): it is given the frames that end was given, and its own are compared with
// that end's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/sim/sim_queues.h"
#include "emulator/transport/interface/attributes.h"
#include "tests/unit/transport/rxe_differences.h"
#include "tests/unit/wire/pcap_file.h"

namespace rocemu::transport_test {

// RxeStory is what README.md beside the captures says of one file. Frames are counted from 0 per
// direction.
struct RxeStory {
  std::string_view file;  // without .pcap
  transport::WorkOpcode opcode;
  uint32_t length_bytes;  // of each message
  uint32_t messages;
  uint32_t mtu_bytes = 1024;
  bool one_at_a_time = false;           // the next is posted when the last has completed
  std::vector<size_t> lost_requests{};  // captured, and then dropped by the responder's machine
  std::vector<size_t> lost_answers{};   // and by the requester's
  size_t receives_from = 0;             // the first request that finds receives posted
  uint32_t receive_bytes = 1 << 14;     // length of each receive
  bool key_granted = true;              // false: the rkey on the wire is not the region's
  uint32_t access = transport::kRemoteWrite | transport::kRemoteRead | transport::kRemoteAtomic;
  uint8_t min_rnr_timer = 24;
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  transport::WcStatus status = transport::WcStatus::success;  // of the first completion
};

// A frame's fields by name, from the BTH on.
struct Described {
  std::string operation;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string text() const;  // all of it in one line
};

struct Replay {
  std::vector<Described> ours;
  std::vector<Described> rxe;
  std::vector<transport::WcStatus> statuses;  // of the requester's completions
};

Replay replay_responder(const RxeStory& story);
Replay replay_requester(const RxeStory& story);

// Makes of rxe's frames those that we should have sent. `used` counts for each difference how often
// it was found.
std::vector<Described> with_differences(const std::vector<Described>& rxe, Side side,
                                        std::string_view file, std::vector<size_t>& used);

}  // namespace rocemu::transport_test
