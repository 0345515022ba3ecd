// Loss recovery by itself: what is in flight, what sets the cursor back, and how often.
#include "emulator/transport/requester/go_back_n.h"

#include <catch2/catch.hpp>

#include "emulator/transport/qp/rc_tables.h"
#include "tests/unit/transport/requester_stage.h"

namespace rocemu::transport_test {

namespace {

constexpr TimeNs kAckTimeoutNs = ack_timeout_ns(8);

// With a message of 200 packets, the first at PSN 100.
struct RecoveryStage : RequesterStage {
  RecoveryStage() {
    window.start();
    recovery.start();
    post(WorkOpcode::write, 200 * 1024);
    REQUIRE(window.take_next(0, [](const SendWork&) { return WcStatus::success; }));
  }
  Psn at() { return window.current().first_psn + window.current_packet(); }
  // Returns how many of them had been sent before.
  uint32_t send(uint32_t packets, TimeNs now = 0) {
    uint32_t again = 0;
    for (uint32_t i = 0; i < packets; ++i) {
      const bool wants_ack = recovery.wants_ack(at(), 64);
      again += recovery.on_sent(now, at(), at() + 1, wants_ack) ? 1 : 0;
      window.advance(1);
    }
    return again;
  }
  void acknowledge(Psn psn, TimeNs now) {
    recovery.acknowledge(psn);
    recovery.on_progress(now);
  }

  SendWindow window{context()};
  GoBackN recovery{context(), window};
};

}  // namespace

TEST_CASE("In flight is what was sent and not acknowledged") {
  RecoveryStage stage;
  CHECK(stage.recovery.in_flight() == 0);
  CHECK_FALSE(stage.recovery.is_in_flight(Psn(100)));
  CHECK(stage.send(10) == 0);
  CHECK(stage.recovery.in_flight() == 10);
  stage.acknowledge(Psn(104), 0);
  CHECK(stage.recovery.in_flight() == 6);
  CHECK_FALSE(stage.recovery.is_in_flight(Psn(103)));
  CHECK(stage.recovery.is_in_flight(Psn(104)));
  CHECK(stage.recovery.is_in_flight(Psn(109)));
  CHECK_FALSE(stage.recovery.is_in_flight(Psn(110)));
}

TEST_CASE("An ACK is asked for twice in a window, and when it is full") {
  RecoveryStage stage;
  std::vector<uint32_t> asking;
  for (uint32_t psn = 100; psn < 170; ++psn) {
    if (stage.recovery.wants_ack(Psn(psn), 16)) asking.push_back(psn);
    stage.recovery.on_sent(0, Psn(psn), Psn(psn + 1), stage.recovery.wants_ack(Psn(psn), 16));
    if (psn == 115) stage.acknowledge(Psn(116), 0);
    if (psn >= 130) break;
  }
  CHECK(asking == std::vector<uint32_t>{107, 115, 123});
  CHECK(stage.recovery.answer_is_owed());
  stage.acknowledge(Psn(124), 0);
  CHECK_FALSE(stage.recovery.answer_is_owed());
}

TEST_CASE("A loss goes back to the oldest packet, as often as retry_count says") {
  RecoveryStage stage;
  stage.send(10);
  stage.acknowledge(Psn(103), 0);
  REQUIRE(stage.recovery.retry());
  CHECK(stage.at() == Psn(103));
  CHECK(stage.send(9) == 7);
  REQUIRE(stage.recovery.retry());
  CHECK_FALSE(stage.recovery.retry());
  SECTION("progress gives the retries back") { stage.acknowledge(Psn(104), 0); }
  SECTION("an RNR NAK does, too") { CHECK(stage.recovery.wait_for_receiver(0, 1)); }
  CHECK(stage.recovery.retry());
}

TEST_CASE("The ACK timer runs while something is in flight") {
  RecoveryStage stage;
  CHECK(stage.recovery.deadline() == kNever);
  stage.send(2, 1000);
  CHECK(stage.recovery.deadline() == 1000 + kAckTimeoutNs);
  stage.send(2, 2000);
  CHECK(stage.recovery.deadline() == 1000 + kAckTimeoutNs);
  stage.acknowledge(Psn(101), 5000);
  CHECK(stage.recovery.deadline() == 5000 + kAckTimeoutNs);
  CHECK_FALSE(stage.recovery.on_timeout(5000 + kAckTimeoutNs - 1));
  CHECK(stage.recovery.on_timeout(5000 + kAckTimeoutNs));
  stage.acknowledge(Psn(104), 6000);
  CHECK(stage.recovery.deadline() == kNever);
}

TEST_CASE("A timeout that is given later counts from sending again") {
  RecoveryStage stage;
  stage.attributes.timeout = 0;
  stage.modify(QpState::ready_to_send);
  stage.send(3);
  CHECK(stage.recovery.deadline() == kNever);
  stage.recovery.on_attributes_changed();
  CHECK(stage.at() == Psn(103));
  stage.attributes.timeout = 8;
  stage.modify(QpState::ready_to_send);
  stage.recovery.on_attributes_changed();
  CHECK(stage.at() == Psn(100));
  CHECK(stage.send(1, 7000) == 1);
  CHECK(stage.recovery.deadline() == 7000 + kAckTimeoutNs);
}

TEST_CASE("Attributes that are changed reach what is in flight") {
  RecoveryStage stage;
  stage.send(5);
  REQUIRE(stage.recovery.retry());
  stage.send(5);
  const auto change = [&stage](auto set) {
    set(stage.attributes);
    stage.modify(QpState::ready_to_send);
    stage.recovery.on_attributes_changed();
  };
  SECTION("retry_count") {
    change([](QpAttributes& attributes) { attributes.retry_count = 3; });
    for (int i = 0; i < 3; ++i) CHECK(stage.recovery.retry());
    CHECK_FALSE(stage.recovery.retry());
  }
  SECTION("rnr_retry") {
    change([](QpAttributes& attributes) { attributes.rnr_retry = 0; });
    CHECK_FALSE(stage.recovery.wait_for_receiver(0, 5));
  }
  SECTION("no timeout any more") {
    change([](QpAttributes& attributes) { attributes.timeout = 0; });
    CHECK(stage.recovery.deadline() == kNever);
  }
  SECTION("another one gives no retries back") {
    change([](QpAttributes& attributes) { attributes.access = kRemoteRead; });
    CHECK(stage.recovery.retry());
    CHECK_FALSE(stage.recovery.retry());
  }
}

TEST_CASE("The copy of a packet is under way until its answer may have come") {
  RecoveryStage stage;
  stage.send(5);
  CHECK_FALSE(stage.recovery.copy_is_under_way(500, 100));
  REQUIRE(stage.recovery.retry());
  CHECK(stage.recovery.copy_is_under_way(500, 100));  // it has not left yet
  stage.send(3, 1000);
  CHECK(stage.recovery.copy_is_under_way(1099, 100));
  CHECK_FALSE(stage.recovery.copy_is_under_way(1100, 100));
  CHECK_FALSE(stage.recovery.copy_is_under_way(1000, 0));
  SECTION("another path") { stage.recovery.begin_anew(); }
  SECTION("a receiver that is not ready") { REQUIRE(stage.recovery.wait_for_receiver(1000, 5)); }
  CHECK_FALSE(stage.recovery.copy_is_under_way(1000, 100));
}

TEST_CASE("An implied NAK is taken once until there is progress or a timeout") {
  RecoveryStage stage;
  stage.send(5);
  CHECK(stage.recovery.take_implied_nak());
  CHECK_FALSE(stage.recovery.take_implied_nak());
  SECTION("progress") { stage.acknowledge(Psn(101), 0); }
  SECTION("a timeout") { CHECK(stage.recovery.on_timeout(kAckTimeoutNs)); }
  CHECK(stage.recovery.take_implied_nak());
}

TEST_CASE("A wait for the receiver goes back, rests the ACK timer, and costs an RNR retry") {
  RecoveryStage stage;
  stage.send(5);
  REQUIRE(stage.recovery.wait_for_receiver(1000, 5));
  CHECK(stage.recovery.waits_for_receiver());
  CHECK(stage.at() == Psn(100));
  CHECK(stage.recovery.deadline() == 1000 + rnr_timer_ns(5));
  CHECK_FALSE(stage.recovery.take_implied_nak());
  CHECK_FALSE(stage.recovery.answer_is_owed());
  CHECK_FALSE(stage.recovery.on_timeout(1000 + rnr_timer_ns(5)));
  CHECK_FALSE(stage.recovery.waits_for_receiver());
  SECTION("rnr_retry is used up") { CHECK_FALSE(stage.recovery.wait_for_receiver(0, 5)); }
  SECTION("progress gives them back") {
    stage.acknowledge(Psn(101), 0);
    CHECK(stage.recovery.wait_for_receiver(0, 5));
  }
  SECTION("7 is for ever") {
    stage.attributes.rnr_retry = 7;
    stage.modify(QpState::ready_to_send);
    for (int i = 0; i < 20; ++i) CHECK(stage.recovery.wait_for_receiver(0, 5));
  }
}

TEST_CASE("A probe goes back without costing a retry") {
  RecoveryStage stage;
  stage.send(8);
  for (int i = 0; i < 5; ++i) {
    stage.recovery.seek_oldest();
    CHECK(stage.at() == Psn(100));
    stage.recovery.seek_end();
    CHECK(stage.at() == Psn(108));
  }
  CHECK(stage.recovery.retry());
}

}  // namespace rocemu::transport_test
