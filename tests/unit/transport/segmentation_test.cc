// TCP segmentation over a raw packet QP: which frames leave, what is refused, and who waits.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr size_t kTsoHeaderBytes = kEthernetBytes + kIpv4Bytes + kTcpBytes;
constexpr size_t kTsoSequenceAt = kEthernetBytes + kIpv4Bytes + 4;

// Two raw packet QPs of one host, and what they send.
class TsoStage {
 public:
  TsoStage() : pair_(options()) {
    pair_.fabric.observer = [this](const sim::FrameRecord& record) {
      if (record.kind == sim::FrameRecord::Kind::sent)
        frames.emplace_back(record.frame.begin(), record.frame.end());
      return false;
    };
  }

  static PairOptions options() {
    PairOptions options;
    options.a_service = options.b_service = Service::raw_packet;
    options.mtu_bytes = kMaxPlainFrameBytes;
    return options;
  }

  std::vector<std::byte> headers(uint8_t protocol = kIpProtocolTcp) {
    std::vector<std::byte> bytes(kTsoHeaderBytes);
    std::byte* const p = bytes.data();
    const MacAddress to = pair_.b.node().mac();
    std::ranges::copy(std::as_bytes(std::span(to)), p);
    store_be16(p + 12, kEtherTypeIpv4);
    store_u8(p + kEthernetBytes, kIpv4VersionAndLength);
    store_u8(p + kEthernetBytes + 9, protocol);
    store_u8(p + kEthernetBytes + kIpv4Bytes + 12, kTcpBytes / 4 << 4);
    return bytes;
  }

  SendRequest tso(const std::vector<Sge>& sges, uint32_t segment_bytes) {
    return {.wr_id = 1,
            .opcode = WorkOpcode::tso,
            .sges = sges,
            .tso_headers = headers(),
            .tso_segment_bytes = segment_bytes};
  }

  WcStatus status_of(SendRequest request) {
    host().post(std::move(request));
    pair_.drive();
    REQUIRE(host().send_cq.completions.size() == 1);
    return host().send_cq.completions[0].status;
  }

  Host& host() { return pair_.a; }
  Pair& pair() { return pair_; }
  std::vector<std::vector<std::byte>> frames;

 private:
  Pair pair_;
};

}  // namespace

TEST_CASE("TSO cuts a message of several elements into frames, the last with the rest") {
  TsoStage stage;
  Host& host = stage.host();
  const Buffer buffer = host.buffer(1000, 3);
  const std::vector<std::byte> memory = host.bytes(buffer);
  CHECK(stage.status_of(stage.tso({buffer.sge(0, 150), buffer.sge(500, 101)}, 100)) ==
        WcStatus::success);
  CHECK(host.send_cq.completions[0].opcode == WcOpcode::tso);
  REQUIRE(stage.frames.size() == 3);
  std::vector<std::byte> message;
  for (uint32_t i = 0; i < 3; ++i) {
    const std::vector<std::byte>& frame = stage.frames[i];
    CHECK(load_be32(frame.data() + kTsoSequenceAt) == i * 100);
    message.insert(message.end(), frame.begin() + kTsoHeaderBytes, frame.end());
  }
  CHECK(message.size() == 251);
  CHECK(std::equal(message.begin(), message.begin() + 150, memory.begin()));
  CHECK(std::equal(message.begin() + 150, message.end(), memory.begin() + 500));
}

TEST_CASE("TSO without payload is a frame of headers") {
  TsoStage stage;
  CHECK(stage.status_of(stage.tso({}, 100)) == WcStatus::success);
  REQUIRE(stage.frames.size() == 1);
  CHECK(stage.frames[0].size() == kTsoHeaderBytes);
}

TEST_CASE("TSO that no frames can be made of fails, and sends none") {
  TsoStage stage;
  const Buffer buffer = stage.host().buffer(kMaxTsoBytes + 1);
  SECTION("no segment size") {
    CHECK(stage.status_of(stage.tso({buffer.sge(0, 10)}, 0)) == WcStatus::local_qp_operation_error);
  }
  SECTION("headers of UDP") {
    SendRequest request = stage.tso({buffer.sge(0, 10)}, 5);
    request.tso_headers = stage.headers(kIpProtocolUdp);
    CHECK(stage.status_of(request) == WcStatus::local_qp_operation_error);
  }
  SECTION("more than a request may have") {
    CHECK(stage.status_of(stage.tso({buffer.sge()}, 1000)) == WcStatus::local_length_error);
  }
  SECTION("longer frames than there are") {
    const uint32_t most = kMaxPlainFrameBytes - kTsoHeaderBytes;
    CHECK(stage.status_of(stage.tso({buffer.sge(0, most + 1)}, most + 1)) ==
          WcStatus::local_length_error);
  }
  SECTION("memory that is not the program's") {
    CHECK(stage.status_of(stage.tso({{buffer.address + buffer.length_bytes, 10, buffer.sge().lkey}},
                                    5)) == WcStatus::local_protection_error);
  }
  CHECK(stage.frames.empty());
}

TEST_CASE("TSO over RC is refused") {
  Pair pair;
  const Buffer buffer = pair.a.buffer(100);
  SendRequest request{.wr_id = 1, .opcode = WorkOpcode::tso, .sges = {buffer.sge()}};
  request.tso_segment_bytes = 0;
  pair.a.post(std::move(request));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_qp_operation_error});
  CHECK(pair.sent.empty());
}

// What was looked at when the request was taken need not be what leaves.
TEST_CASE("Headers that a program changes under way leave as TCP's or not at all") {
  TsoStage stage;
  Host& host = stage.host();
  const Buffer buffer = host.buffer(1000, 3);
  std::byte* headers = nullptr;
  host.send_queue.on_post = [&](const SendRequest& posted) {
    headers = const_cast<std::byte*>(posted.tso_headers.data());  // which the queue keeps
  };
  uint64_t sent = 0;
  stage.pair().fabric.observer = [&](const sim::FrameRecord& record) {
    if (record.kind != sim::FrameRecord::Kind::sent) return false;
    CHECK(load_u8(record.frame.data() + kEthernetBytes + 9) == kIpProtocolTcp);
    store_u8(headers + kEthernetBytes + 9, kIpProtocolUdp);
    ++sent;
    return false;
  };
  CHECK(stage.status_of(stage.tso({buffer.sge()}, 1)) == WcStatus::success);
  CHECK(sent > 0);
  CHECK(host.counters()[TraceEvent::message_dropped] == 1000 - sent);
}

TEST_CASE("A message of a quarter of a million frames lets another QP send") {
  TsoStage stage;
  Host& host = stage.host();
  const Buffer buffer = host.buffer(20'000, 3);
  const auto destination = host.node().memory().at(buffer.address, kEthernetBytes);
  std::copy_n(stage.headers().begin(), kEthernetBytes, destination.begin());
  sim::SimSendQueue other_queue(16);
  sim::SimCompletionQueue other_cq;
  const QpResources resources{1, &other_queue, &host.receive_queue, &other_cq, &host.receive_cq};
  const auto other = host.endpoint().create(Service::raw_packet, resources);
  REQUIRE(other);
  for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    host.endpoint().modify(*other, state, host.attributes);
  host.post(stage.tso({buffer.sge()}, 1));
  REQUIRE(other_queue.post({.wr_id = 2, .sges = {buffer.sge(0, 64)}}));
  host.node().ring(*other);
  stage.pair().drive();
  REQUIRE(stage.frames.size() == 20'001);
  const auto plain =
      std::ranges::find_if(stage.frames, [](const auto& frame) { return frame.size() == 64; });
  CHECK(plain - stage.frames.begin() < 500);
}

}  // namespace rocemu::transport_test
