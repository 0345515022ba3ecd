#include <catch2/catch.hpp>

#include "emulator/wire/build.h"
#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

PairOptions datagrams(bool ipv6 = false) {
  PairOptions options;
  options.a_service = options.b_service = Service::ud;
  options.node.ipv6 = ipv6;
  return options;
}

std::vector<std::byte> part(const std::vector<std::byte>& bytes, size_t offset, size_t length) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(offset);
  return {begin, begin + static_cast<ptrdiff_t>(length)};
}

}  // namespace

TEST_CASE("A datagram arrives behind its GRH, with the sender's number") {
  const bool ipv6 = GENERATE(false, true);
  Pair pair(datagrams(ipv6));
  const Buffer data = pair.a.buffer(300, 1);
  const Buffer room = pair.b.buffer(400, 2);
  pair.b.receive(7, {room.sge()});
  pair.a.post(with_immediate(datagram(data, pair.b), 0x11223344));
  pair.drive();

  REQUIRE(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  REQUIRE(pair.b.receive_cq.completions.size() == 1);
  const Completion& received = pair.b.receive_cq.completions[0];
  CHECK(received.wr_id == 7);
  CHECK(received.byte_length == 340);
  CHECK(received.has_grh);
  CHECK(received.has_immediate);
  CHECK(received.immediate == 0x11223344);
  CHECK(received.source_qp == pair.a.qpn);
  CHECK(received.service_level == (ipv6 ? 9 : 10));  // RoCE v2, kind of IP
  const auto bytes = pair.b.bytes(room);
  CHECK(part(bytes, 40, 300) == pair.a.bytes(data));
  const auto& source = pair.a.node().gid().bytes;
  if (ipv6) {
    CHECK((bytes[0] & std::byte{0xf0}) == std::byte{0x60});
    for (size_t i = 0; i < 16; ++i) CHECK(bytes[8 + i] == std::byte{source[i]});
  } else {
    CHECK(part(bytes, 0, 20) == std::vector<std::byte>(20));
    CHECK(bytes[20] == std::byte{0x45});
    for (size_t i = 0; i < 4; ++i) CHECK(bytes[32 + i] == std::byte{source[12 + i]});
  }
}

TEST_CASE("A datagram with another Q_Key is dropped and counted") {
  Pair pair(datagrams());
  const Buffer data = pair.a.buffer(10, 1);
  pair.b.receive(1, {pair.b.buffer(100).sge()});
  SendRequest request = datagram(data, pair.b);
  request.remote_qkey = 0x4321;
  pair.a.post(request);
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.receive_cq.completions.empty());
  CHECK(pair.b.counters()[TraceEvent::qkey_violation] == 1);
  CHECK_FALSE(pair.b.receive_queue.empty());
}

TEST_CASE("A request with a controlled Q_Key sends the QP's own") {
  Pair pair(datagrams());
  pair.b.receive(1, {pair.b.buffer(100).sge()});
  SendRequest request = datagram(pair.a.buffer(10, 1), pair.b);
  request.remote_qkey = 0x80000001;
  pair.a.post(request);
  pair.drive();
  CHECK(pair.sent.at(0).ext.deth.qkey == 0x1234);
  CHECK(pair.b.receive_cq.completions.size() == 1);
}

TEST_CASE("Without a receive, or in one that is too short, a datagram is lost and nothing else") {
  Pair pair(datagrams());
  const Buffer data = pair.a.buffer(100, 1);
  pair.a.post(datagram(data, pair.b, 1));
  pair.drive();
  CHECK(pair.b.counters()[TraceEvent::no_receive] == 1);

  const Buffer room = pair.b.buffer(139);
  pair.b.receive(5, {room.sge()});
  pair.a.post(datagram(data, pair.b, 2));
  pair.drive();
  CHECK(pair.b.counters()[TraceEvent::message_dropped] == 1);
  CHECK(pair.b.receive_cq.completions.empty());

  // The receive waits for a datagram that fits.
  Buffer shorter = data;
  shorter.length_bytes = 99;
  pair.a.post(datagram(shorter, pair.b, 3));
  pair.drive();
  REQUIRE(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{5});
  CHECK(pair.b.receive_cq.completions[0].byte_length == 139);
  CHECK(statuses(pair.a.send_cq) == std::vector(3, WcStatus::success));
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A bad datagram request takes the send queue to SQE, and receiving goes on") {
  Pair pair(datagrams());
  const Buffer data = pair.a.buffer(2000, 1);
  Buffer fits = data;
  fits.length_bytes = 100;
  SendRequest bad = datagram(data, pair.b, 2);  // longer than the MTU
  WcStatus expected = WcStatus::local_length_error;
  SECTION("too long") {}
  SECTION("an address handle that is not there") {
    bad = datagram(fits, pair.b, 2);
    bad.address_handle = 99;
    expected = WcStatus::local_qp_operation_error;
  }
  SECTION("an operation that datagrams do not have") {
    bad = write(fits, fits, 2);
    bad.address_handle = kPeer;
    expected = WcStatus::local_qp_operation_error;
  }
  SECTION("memory that is no longer there") {
    Buffer gone = pair.a.buffer(100, 1);
    pair.a.node().memory().break_region(gone.key);
    bad = datagram(gone, pair.b, 2);
    expected = WcStatus::local_protection_error;
  }
  for (uint64_t i = 0; i < 3; ++i) pair.b.receive(i, {pair.b.buffer(200).sge()});
  pair.a.post(datagram(fits, pair.b, 1));
  pair.a.post(bad);
  pair.a.post(datagram(fits, pair.b, 3));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, expected, WcStatus::flush_error});
  CHECK(pair.a.state() == QpState::send_queue_error);
  CHECK(pair.b.receive_cq.completions.size() == 1);

  pair.a.receive(9, {pair.a.buffer(200).sge()});
  pair.b.post(datagram(pair.b.buffer(10, 3), pair.a));
  pair.drive();
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{9});

  pair.a.post(datagram(fits, pair.b, 4));  // flushed while in SQE
  pair.drive();
  pair.a.modify(QpState::ready_to_send);
  pair.a.post(datagram(fits, pair.b, 5));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3, 4, 5});
  CHECK(pair.a.send_cq.completions[3].status == WcStatus::flush_error);
  CHECK(pair.a.send_cq.completions[4].status == WcStatus::success);
}

TEST_CASE(
    "What stands behind an error is flushed, however soon the QP goes on and however much it is") {
  constexpr uint64_t kBehind = 300;  // of which a turn flushes some
  Pair pair(datagrams());
  const Buffer data = pair.a.buffer(100, 1);
  SendRequest bad = datagram(data, pair.b, 0);
  bad.address_handle = 99;
  pair.a.post(bad);
  for (uint64_t i = 1; i <= kBehind; ++i) pair.a.post(datagram(data, pair.b, i));
  pair.a.endpoint().transmit(pair.fabric.now_ns(), pair.a.node(), 1);
  REQUIRE(pair.a.state() == QpState::send_queue_error);
  REQUIRE(pair.a.send_cq.completions.size() < kBehind);
  pair.a.modify(QpState::ready_to_send);
  pair.a.post(datagram(data, pair.b, kBehind + 1));
  pair.drive();
  std::vector<WcStatus> expected(kBehind + 2, WcStatus::flush_error);
  expected.front() = WcStatus::local_qp_operation_error;
  expected.back() = WcStatus::success;
  CHECK(statuses(pair.a.send_cq) == expected);
}

TEST_CASE("A receive into memory that is gone takes the QP to ERROR") {
  Pair pair(datagrams());
  const Buffer room = pair.b.buffer(200);
  pair.b.node().memory().break_region(room.key);
  pair.b.receive(1, {room.sge()});
  pair.b.receive(2, {pair.b.buffer(200).sge()});
  pair.a.post(datagram(pair.a.buffer(50, 1), pair.b));
  pair.drive();
  CHECK(statuses(pair.b.receive_cq) ==
        std::vector{WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(pair.b.state() == QpState::error);
  CHECK(pair.b.events().empty());
}

TEST_CASE("A multicast datagram goes to every attached QP") {
  Pair pair(datagrams(true));
  // A second QP of host b.
  sim::SimReceiveQueue queue;
  sim::SimCompletionQueue cq;
  sim::SimSendQueue sends(4);
  QpResources resources{1, &sends, &queue, &cq, &cq};
  resources.addresses = &pair.b.addresses;
  const wire::Qpn second = *pair.b.endpoint().create(Service::ud, resources);
  for (QpState state : {QpState::init, QpState::ready_to_receive})
    pair.b.endpoint().modify(second, state, pair.b.attributes);
  const Buffer room = pair.b.buffer(200);
  queue.post({.wr_id = 20, .sges = {room.sge()}});
  pair.b.receive(10, {pair.b.buffer(200).sge()});

  const std::vector<std::byte> payload(60);
  const auto arrives = [&] {
    wire::Bth bth;
    bth.opcode = wire::bth_opcode(wire::Transport::ud, Operation::send_only);
    bth.destination_qp = wire::kMulticastQpn;
    wire::ExtendedHeaders ext;
    ext.deth = {0x1234, pair.a.qpn};
    pair.b.node().receive(network::SharedFrame(wire::build_frame(
        {}, {.source = pair.a.node().gid(), .destination = kGroupGid}, {}, bth, ext, payload)));
    pair.drive();
  };
  MulticastGroups& groups = pair.b.endpoint().multicast_groups();
  groups.attach(kGroupGid, second);
  groups.attach(kGroupGid, pair.b.qpn);
  arrives();
  CHECK(wr_ids(cq) == std::vector<uint64_t>{20});
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{10});

  CHECK(groups.detach(kGroupGid, pair.b.qpn));
  CHECK_FALSE(groups.detach(kGroupGid, pair.b.qpn));
  queue.post({.wr_id = 21, .sges = {room.sge()}});
  pair.b.receive(11, {room.sge()});
  arrives();
  CHECK(wr_ids(cq) == std::vector<uint64_t>{20, 21});
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{10});
  pair.b.endpoint().destroy(second);
  CHECK(groups.group_count() == 0);
}
