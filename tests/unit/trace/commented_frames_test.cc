// Frames with what is known of them, as they stand in the file.
#include "emulator/trace/show/commented_frames.h"

#include <catch2/catch.hpp>

#include "base/net/text.h"
#include "emulator/wire/build.h"
#include "tests/unit/time_units.h"
#include "tests/unit/trace/pcapng_reader.h"
#include "tests/unit/trace/trace_builder.h"

namespace rocemu::trace {
namespace {

using Catch::Contains;
using wire::Operation;

constexpr uint64_t kUnixNs = 1'700'000'000'000'000'000;

wire::Gid gid_of(uint16_t device) {
  const uint8_t bytes[4] = {10, 77, 0, static_cast<uint8_t>(device + 1)};
  return wire::Gid{IpAddress::of_ipv4(bytes)};
}

// A frame that `device` sends to the other one's QP.
std::vector<std::byte> frame(uint32_t psn, uint16_t device = 0,
                             Operation operation = Operation::send_only) {
  const wire::Ethernet ethernet{};
  wire::Bth bth;
  bth.opcode = static_cast<uint8_t>(operation);
  bth.destination_qp = wire::Qpn{device == 0 ? TraceBuilder::kB : TraceBuilder::kA};
  bth.psn = wire::Psn(psn);
  const std::vector<std::byte> payload(operation == Operation::acknowledge ? 0 : 100,
                                       std::byte{0x5a});
  return wire::build_frame(ethernet, {.source = gid_of(device), .destination = gid_of(1 - device)},
                           {}, bth, {}, payload);
}

class Capture {
 public:
  Capture()
      : frames_(
            "test",
            [](const wire::Gid& gid) -> uint16_t {
              return gid == gid_of(0) ? 0 : gid == gid_of(1) ? 1 : kNoDevice;
            },
            [this](std::string_view block) { file_ += block; }) {
    // The names, and both QPs.
    TraceBuilder builder;
    for (const Record& record : builder.connected().records()) frames_.take_record(record);
  }

  void pass(const std::vector<std::byte>& bytes, uint64_t ns = 0) {
    frames_.take_frame(bytes, kUnixNs + ns, ns);
  }
  // A record that the builder makes.
  template <typename Make>
  void record(Make make) {
    TraceBuilder builder;
    const size_t names = builder.records().size();
    make(builder);
    for (size_t i = names; i < builder.records().size(); ++i)
      frames_.take_record(builder.records()[i]);
  }
  void sent(uint32_t psn, Cause again = Cause::none, uint16_t device = 0) {
    record([&](TraceBuilder& builder) {
      Record& record = builder.packet(0, Kind::packet_sent, psn, device);
      record.cause = again;
      if (again != Cause::none) record.flags |= flag::kRetransmission;
    });
  }
  // The other one looks at it.
  void seen(uint32_t psn, uint16_t device = 0) {
    record([&](TraceBuilder& builder) {
      builder.crossing(0, psn, device);
      builder.records().erase(builder.records().end() - 2);
    });
  }
  CommentedFrames& frames() { return frames_; }
  std::vector<SeenPacket> all() {
    frames_.write_all();
    return read_pcapng(file_);
  }
  size_t written() const { return read_pcapng(file_).size(); }
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  CommentedFrames frames_;
};

}  // namespace

TEST_CASE("commented frames: a frame that is lost, the timeout, and the one that is sent again") {
  Capture capture;
  capture.sent(100);
  capture.pass(frame(100));
  capture.record([](TraceBuilder& builder) {
    Record& lost = builder.packet(0, Kind::packet_lost, 100);
    lost.program = 1;
    lost.cause = Cause::dropped;
    Record& timeout = builder.add(0, Kind::ack_timeout);
    timeout.psn = 100;
    timeout.count = 2;
    timeout.detail = 7;
  });
  capture.sent(100, Cause::ack_timeout);
  capture.pass(frame(100), kMs);
  capture.seen(100);
  const auto packets = capture.all();
  REQUIRE(packets.size() == 2);
  CHECK(packets[0].comment == "QP 0x11 is of sender (100); lost: loss=1% (dropped)");
  CHECK(packets[1].comment == "sent again: timeout 2 of 7; QP 0x12 is of receiver (200)");
  CHECK(packets[0].unix_ns == kUnixNs);
  // As they were: with all of their payload.
  CHECK(packets[0].whole_bytes == frame(100).size());
  CHECK(packets[0].bytes ==
        std::string(reinterpret_cast<const char*>(frame(100).data()), frame(100).size()));
  CHECK(capture.file().find("rocemu0") != std::string::npos);
}

TEST_CASE("commented frames: what a receiver says to a packet") {
  Capture capture;
  for (uint32_t psn = 100; psn < 103; ++psn) capture.pass(frame(psn));
  const auto refuse = [&](uint32_t psn, uint8_t code, uint16_t rule) {
    capture.seen(psn);
    capture.record([&](TraceBuilder& builder) {
      Record& refused = builder.add(0, Kind::packet_refused, 1);
      refused.psn = psn;
      refused.program = rule;
      refused.code = code;
      if (rule != 1) return;
      refused.detail = 0x1702;
      refused.cause = Cause::key_gone;
    });
  };
  refuse(100, 0, 2);  // a datagram
  refuse(101, wire::syndrome::kRnr, 2);
  capture.record([](TraceBuilder& builder) {
    Record& rnr = builder.add(0, Kind::rnr_sent, 1);
    rnr.psn = 101;
    rnr.code = wire::syndrome::kRnr | 1;
  });
  refuse(102, wire::syndrome::kNakRemoteAccess, 1);
  const auto packets = capture.all();
  CHECK_THAT(packets[0].comment, Contains("dropped: no receive posted"));
  CHECK(packets[1].comment == "draws RNR NAK, 10 us: no receive posted");
  CHECK(packets[2].comment ==
        "draws NAK: remote access error: rkey 0x1702 of a deregistered region");
}

TEST_CASE("commented frames: a packet that is lost before it passes has no comment on another") {
  Capture capture;
  capture.sent(100);
  capture.pass(frame(100));
  capture.seen(100);
  capture.sent(100, Cause::early_probe);
  capture.record([](TraceBuilder& builder) {
    builder.packet(0, Kind::packet_lost, 100).cause = Cause::dropped;
  });
  capture.sent(100, Cause::early_probe);
  capture.pass(frame(100), kMs);
  const auto packets = capture.all();
  REQUIRE(packets.size() == 2);
  CHECK(packets[0].comment == "QP 0x11 is of sender (100); QP 0x12 is of receiver (200)");
  CHECK(packets[1].comment == "sent again: early probe");
}

TEST_CASE("commented frames: they wait for what is to come, and no longer") {
  Capture capture;
  capture.pass(frame(100));
  capture.pass(frame(101), 150 * kMs);
  capture.frames().write_due(CommentedFrames::kHoldNs - 1);
  CHECK(capture.written() == 0);
  capture.frames().write_due(CommentedFrames::kHoldNs);
  CHECK(capture.written() == 1);
  capture.seen(100);  // too late: nothing is there to be told
  capture.seen(101);
  // However much comes, no more is held than there is room for.
  const std::vector<std::byte> large(4096);
  constexpr size_t kMany = CommentedFrames::kMaxHeldBytes / 4096 + 100;
  for (size_t i = 0; i < kMany; ++i) capture.pass(large, 160 * kMs);
  CHECK(capture.written() >= 100);
  CHECK(capture.all().size() == kMany + 2);
  CHECK(capture.frames().is_empty());
}

}  // namespace rocemu::trace
