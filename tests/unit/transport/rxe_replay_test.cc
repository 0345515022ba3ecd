// Real traffic between two Linux rxe ends, with one of them replaced by our transport: its frames
// are rxe's, field by field, but for the differences listed in rxe_differences.h.
#include "tests/unit/transport/rxe_replay.h"

#include <catch2/catch.hpp>

namespace rocemu::transport_test {

namespace {

using transport::WcStatus;
using transport::WorkOpcode;

std::vector<RxeStory> stories() {
  return {
      {.file = "rc-send-1024", .opcode = WorkOpcode::send, .length_bytes = 3000, .messages = 3},
      {.file = "rc-send-unaligned",
       .opcode = WorkOpcode::send,
       .length_bytes = 13,
       .messages = 3,
       .one_at_a_time = true},
      {.file = "rc-send-zero", .opcode = WorkOpcode::send, .length_bytes = 0, .messages = 1},
      {.file = "rc-send-psnwrap", .opcode = WorkOpcode::send, .length_bytes = 5000, .messages = 2},
      {.file = "rc-sendimm", .opcode = WorkOpcode::send_imm, .length_bytes = 2000, .messages = 2},
      {.file = "rc-ipv6", .opcode = WorkOpcode::send, .length_bytes = 3000, .messages = 2},
      {.file = "rc-pingpong",
       .opcode = WorkOpcode::send,
       .length_bytes = 2048,
       .messages = 4,
       .one_at_a_time = true},
      {.file = "rc-write-4096",
       .opcode = WorkOpcode::write,
       .length_bytes = 20000,
       .messages = 2,
       .mtu_bytes = 4096},
      {.file = "rc-write-1024", .opcode = WorkOpcode::write, .length_bytes = 5000, .messages = 2},
      {.file = "rc-write-256",
       .opcode = WorkOpcode::write,
       .length_bytes = 1000,
       .messages = 1,
       .mtu_bytes = 256},
      {.file = "rc-writeimm", .opcode = WorkOpcode::write_imm, .length_bytes = 2500, .messages = 2},
      {.file = "rc-write-long-1024",
       .opcode = WorkOpcode::write,
       .length_bytes = 100000,
       .messages = 1},
      {.file = "rc-read-1024",
       .opcode = WorkOpcode::read,
       .length_bytes = 5000,
       .messages = 2,
       .one_at_a_time = true},
      {.file = "rc-read-4096",
       .opcode = WorkOpcode::read,
       .length_bytes = 20000,
       .messages = 2,
       .mtu_bytes = 4096},
      {.file = "rc-cas",
       .opcode = WorkOpcode::compare_swap,
       .length_bytes = 8,
       .messages = 3,
       .one_at_a_time = true},
      {.file = "rc-fadd",
       .opcode = WorkOpcode::fetch_add,
       .length_bytes = 8,
       .messages = 3,
       .one_at_a_time = true},
      {.file = "rnr-nak",
       .opcode = WorkOpcode::send,
       .length_bytes = 64,
       .messages = 2,
       .receives_from = 14},
      {.file = "rnr-exceeded",
       .opcode = WorkOpcode::send,
       .length_bytes = 64,
       .messages = 1,
       .receives_from = 2,
       .min_rnr_timer = 26,
       .rnr_retry = 1,
       .status = WcStatus::rnr_retry_exceeded_error},
      {.file = "nak-access-write",
       .opcode = WorkOpcode::write,
       .length_bytes = 2000,
       .messages = 1,
       .key_granted = false,
       .status = WcStatus::remote_access_error},
      {.file = "nak-access-read",
       .opcode = WorkOpcode::read,
       .length_bytes = 2000,
       .messages = 1,
       .key_granted = false,
       .status = WcStatus::remote_access_error},
      {.file = "nak-access-rights",
       .opcode = WorkOpcode::write,
       .length_bytes = 100,
       .messages = 1,
       .access = transport::kLocalWrite,
       .status = WcStatus::remote_invalid_request_error},
      {.file = "nak-invalid-length",
       .opcode = WorkOpcode::send,
       .length_bytes = 9000,
       .messages = 1,
       .receive_bytes = 4096,
       .status = WcStatus::remote_operation_error},
      {.file = "retry-lost-middle",
       .opcode = WorkOpcode::write,
       .length_bytes = 5000,
       .messages = 2,
       .lost_requests = {2}},
      {.file = "retry-lost-last",
       .opcode = WorkOpcode::write,
       .length_bytes = 5000,
       .messages = 1,
       .lost_requests = {4}},
      {.file = "retry-lost-ack",
       .opcode = WorkOpcode::send,
       .length_bytes = 3000,
       .messages = 1,
       .lost_answers = {0, 2}},
      {.file = "retry-lost-read-response",
       .opcode = WorkOpcode::read,
       .length_bytes = 5000,
       .messages = 1,
       .lost_answers = {2}},
      {.file = "retry-lost-atomic-ack",
       .opcode = WorkOpcode::fetch_add,
       .length_bytes = 8,
       .messages = 2,
       .one_at_a_time = true,
       .lost_answers = {0, 2}},
      {.file = "retry-exceeded",
       .opcode = WorkOpcode::send,
       .length_bytes = 100,
       .messages = 1,
       .lost_requests = {0, 1, 2, 3},
       .retry_count = 3,
       .status = WcStatus::retry_exceeded_error},
  };
}

void compare(const std::vector<Described>& ours, const std::vector<Described>& expected) {
  CHECK(ours.size() == expected.size());
  for (size_t i = 0; i < std::min(ours.size(), expected.size()); ++i) {
    INFO("frame " << i);
    CHECK(ours[i].text() == expected[i].text());
  }
}

}  // namespace

TEST_CASE("replayed to our responder, the requests of a Linux rxe get rxe's answers") {
  std::vector<size_t> used(kRxeDifferences.size());
  for (const RxeStory& story : stories()) {
    INFO(story.file);
    const Replay replay = replay_responder(story);
    compare(replay.ours, with_differences(replay.rxe, Side::responder, story.file, used));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    INFO("difference " << i << " is in no capture");
    CHECK((used[i] > 0 || kRxeDifferences[i].side != Side::responder));
  }
}

TEST_CASE("given the answers of a Linux rxe, our requester sends rxe's requests") {
  std::vector<size_t> used(kRxeDifferences.size());
  for (const RxeStory& story : stories()) {
    INFO(story.file);
    const Replay replay = replay_requester(story);
    compare(replay.ours, with_differences(replay.rxe, Side::requester, story.file, used));
    REQUIRE(replay.statuses.size() == story.messages);
    CHECK(replay.statuses.front() == story.status);
    for (size_t i = 1; i < replay.statuses.size(); ++i)
      CHECK(replay.statuses[i] == WcStatus::success);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    INFO("difference " << i << " is in no capture");
    CHECK((used[i] > 0 || kRxeDifferences[i].side != Side::requester));
  }
}

}  // namespace rocemu::transport_test
