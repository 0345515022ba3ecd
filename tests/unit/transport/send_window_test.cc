// The send window by itself: PSNs, the cursor, the order of completions, draining.
#include "emulator/transport/requester/send_window.h"

#include <catch2/catch.hpp>

#include "tests/unit/transport/requester_stage.h"

namespace rocemu::transport_test {

namespace {

struct WindowStage : RequesterStage {
  WindowStage() { window.start(); }

  bool take() {
    return window.take_next(0, [this](const SendWork&) { return service_fault; });
  }
  // Where the cursor stands.
  Psn at() { return window.current().first_psn + window.current_packet(); }
  std::vector<std::pair<uint64_t, WcStatus>> outcomes() {
    std::vector<std::pair<uint64_t, WcStatus>> outcomes;
    for (const Completion& completion : completions())
      outcomes.emplace_back(completion.wr_id, completion.status);
    return outcomes;
  }

  WcStatus service_fault = WcStatus::success;
  SendWindow window{context()};
};

using Outcomes = std::vector<std::pair<uint64_t, WcStatus>>;

}  // namespace

TEST_CASE("A request owns a PSN for each of its packets, a faulty or local one owns none") {
  WindowStage stage;
  stage.post(WorkOpcode::write, 3 * 1024);
  stage.post(WorkOpcode::bind_window, 0);
  stage.post(WorkOpcode::send, 0);
  stage.post(WorkOpcode::send, 5000, WcStatus::local_length_error);
  stage.post(WorkOpcode::fetch_add, 8);
  stage.post(WorkOpcode::read, 1025);
  while (stage.take()) stage.window.seek(Psn(0xffff));
  REQUIRE(stage.window.size() == 6);
  const std::vector<uint32_t> packets = {3, 0, 1, 0, 1, 2};
  uint32_t psn = 100;
  for (uint32_t i = 0; i < 6; ++i) {
    CHECK(stage.window[i].first_psn == Psn(psn));
    CHECK(stage.window[i].packets == packets[i]);
    psn += packets[i];
  }
}

TEST_CASE("What the service has against a request makes it faulty, but not a second time") {
  WindowStage stage;
  stage.service_fault = WcStatus::local_qp_operation_error;
  stage.post(WorkOpcode::send, 8);
  stage.post(WorkOpcode::send, 8, WcStatus::local_length_error);
  while (stage.take()) {
  }
  CHECK(stage.window[0].work.fault == WcStatus::local_qp_operation_error);
  CHECK(stage.window[0].packets == 0);
  CHECK(stage.window[1].work.fault == WcStatus::local_length_error);
}

TEST_CASE("The cursor runs over packets and requests, and back") {
  WindowStage stage;
  stage.post(WorkOpcode::write, 2 * 1024);
  stage.post(WorkOpcode::read, 4 * 1024);
  CHECK(stage.window.at_end());
  REQUIRE(stage.take());
  CHECK(stage.at() == Psn(100));
  stage.window.advance(1);
  CHECK(stage.at() == Psn(101));
  stage.window.advance(1);
  CHECK(stage.window.at_end());
  REQUIRE(stage.take());
  CHECK(stage.at() == Psn(102));
  // A READ request owns the PSNs of its whole response.
  stage.window.advance(4);
  CHECK(stage.window.at_end());
  for (uint32_t psn : {101u, 104u, 100u, 102u}) {
    stage.window.seek(Psn(psn));
    CHECK(stage.at() == Psn(psn));
  }
  stage.window.seek(Psn(106));
  CHECK(stage.window.at_end());
}

TEST_CASE("The cursor does not go past a request that is never sent") {
  WindowStage stage;
  stage.post(WorkOpcode::write, 2 * 1024);
  stage.post(WorkOpcode::local_invalidate, 0);
  REQUIRE(stage.take());
  stage.window.advance(2);
  REQUIRE(stage.take());
  stage.window.seek(Psn(102));
  CHECK(stage.window.current().work.opcode == WorkOpcode::local_invalidate);
  CHECK_FALSE(stage.window.at_end());
}

TEST_CASE("The cursor does not go past a request whose payload could not be read") {
  WindowStage stage;
  for (int i = 0; i < 2; ++i) {
    stage.post(WorkOpcode::write, 1024);
    REQUIRE(stage.take());
    stage.window.advance(1);
  }
  CHECK_FALSE(stage.window.note_unreadable(Psn(101)));
  stage.window.seek(Psn(102));
  stage.window.complete_oldest(WcStatus::success);
  stage.window.skip_to(Psn(101));
  REQUIRE_FALSE(stage.window.at_end());
  CHECK(stage.window.current().work.fault == WcStatus::local_protection_error);
}

TEST_CASE("An answer takes the cursor along that was set back too far") {
  WindowStage stage;
  stage.post(WorkOpcode::write, 4 * 1024);
  REQUIRE(stage.take());
  stage.window.skip_to(Psn(102));
  CHECK(stage.at() == Psn(102));
  stage.window.skip_to(Psn(101));  // it never goes back
  CHECK(stage.at() == Psn(102));
  stage.window.skip_to(Psn(104));
  CHECK(stage.window.at_end());
}

TEST_CASE("The cursor stays on its packet when requests before it complete") {
  WindowStage stage;
  for (int i = 0; i < 3; ++i) stage.post(WorkOpcode::write, 2 * 1024);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(stage.take());
    stage.window.advance(i < 2 ? 2 : 1);
  }
  CHECK(stage.at() == Psn(105));
  stage.window.complete_oldest(WcStatus::success);
  CHECK(stage.at() == Psn(105));
  stage.window.complete_oldest(WcStatus::success);
  CHECK(stage.window.at_oldest());
  CHECK(stage.at() == Psn(105));
  CHECK(stage.outcomes() == Outcomes{{1, WcStatus::success}, {2, WcStatus::success}});
  CHECK(stage.send_queue.released() == 2);
}

TEST_CASE("READs and atomics count from their first packet to their completion") {
  WindowStage stage;
  const WorkOpcode opcode = GENERATE(WorkOpcode::read, WorkOpcode::compare_swap,
                                     WorkOpcode::atomic_write, WorkOpcode::flush);
  stage.post(opcode, 8);
  stage.post(WorkOpcode::write, 8);
  REQUIRE(stage.take());
  CHECK(stage.window.rd_atomics() == 0);
  stage.window.start_current();
  stage.window.start_current();  // sent again
  CHECK(stage.window.rd_atomics() == 1);
  stage.window.advance(1);
  REQUIRE(stage.take());
  stage.window.start_current();
  CHECK(stage.window.rd_atomics() == 1);
  stage.window.complete_oldest(WcStatus::success);
  CHECK(stage.window.rd_atomics() == 0);
  CHECK(stage.completions().back().byte_length == 8);
}

TEST_CASE("A request whose memory is gone stops the cursor until it is the oldest") {
  WindowStage stage;
  for (int i = 0; i < 3; ++i) stage.post(WorkOpcode::write, 1024);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(stage.take());
    stage.window.advance(1);
  }
  CHECK_FALSE(stage.window.note_unreadable(Psn(101)));
  CHECK(stage.window.current().first_psn == Psn(101));
  CHECK(stage.window.current().work.fault == WcStatus::local_protection_error);
  CHECK_FALSE(stage.window.note_unreadable(Psn(99)));
  CHECK(stage.window.note_unreadable(Psn(100)));
}

TEST_CASE("Everything is flushed in order: what was taken, then what stands in the queue") {
  WindowStage stage;
  for (int i = 0; i < 4; ++i) stage.post(WorkOpcode::send, 8);
  REQUIRE(stage.take());
  stage.window.advance(1);
  REQUIRE(stage.take());
  stage.modify(QpState::error);
  stage.window.flush();
  CHECK(stage.window.empty());
  CHECK_FALSE(stage.take());
  stage.window.flush_posted();
  const WcStatus flushed = WcStatus::flush_error;
  CHECK(stage.outcomes() == Outcomes{{1, flushed}, {2, flushed}, {3, flushed}, {4, flushed}});
}

TEST_CASE("In SQD nothing more is taken, and the program hears once that all is done") {
  WindowStage stage;
  stage.attributes.notify_drained = GENERATE(false, true);
  stage.post(WorkOpcode::send, 8);
  stage.post(WorkOpcode::send, 8);
  REQUIRE(stage.take());
  stage.modify(QpState::send_queue_drain);
  stage.window.note_draining();
  CHECK_FALSE(stage.take());
  stage.window.note_drained();
  CHECK(stage.events.empty());
  stage.window.complete_oldest(WcStatus::success);
  stage.window.note_drained();
  stage.window.note_drained();
  CHECK(stage.events.size() == (stage.attributes.notify_drained ? 1 : 0));
}

}  // namespace rocemu::transport_test
