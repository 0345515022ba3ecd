// Messages that no honest peer would send, and those of a past that nobody remembers.
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>

#include "emulator/wire/cm_message.h"
#include "emulator/wire/cma_header.h"
#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

template <class Body>
Body next(RdmaCm& cm) {
  OutgoingMad mad;
  REQUIRE(cm.next_mad(mad));
  wire::CmMessage message;
  REQUIRE(wire::parse_cm(mad.mad, message) == wire::CmParseError::none);
  REQUIRE(std::holds_alternative<Body>(message.body));
  return std::get<Body>(message.body);
}

bool silent(RdmaCm& cm) {
  OutgoingMad mad;
  return !cm.next_mad(mad);
}

struct Attack : Hosts {
  // As if it came from a.
  template <class Body>
  void inject(const Body& body) {
    b.cm.on_mad(now, {0, b.ipv4().ip, a.ipv4().ip}, wire::build_cm({99, body}));
  }
  // As if it came from a host that is neither.
  template <class Body>
  void inject_from_stranger(const Body& body) {
    b.cm.on_mad(now, {0, b.ipv4().ip, stranger()}, wire::build_cm({99, body}));
  }
  wire::Gid stranger() const {
    wire::Gid gid = a.ipv4().ip;
    gid.bytes[15] = 66;
    return gid;
  }
};

TEST_CASE_METHOD(Attack, "What is about no connection is answered so that its sender stops") {
  inject(wire::CmDreq{5, 6, {}, {}});
  const auto drep = next<wire::CmDrep>(b.cm);
  CHECK(drep.local_comm_id == 6);
  CHECK(drep.remote_comm_id == 5);
  wire::CmRep rep;
  rep.local_comm_id = 7;
  rep.remote_comm_id = 8;
  inject(rep);
  const auto rej = next<wire::CmRej>(b.cm);
  CHECK(rej.remote_comm_id == 7);
  CHECK(rej.reason == wire::cm_reject::kInvalidCommId);
}

TEST_CASE_METHOD(Attack, "What needs no answer gets none") {
  inject(wire::CmRtu{1, 2, {}});
  inject(wire::CmRej{});
  inject(wire::CmDrep{1, 2, {}});
  inject(wire::CmMra{1, 2, wire::CmSubject::req, 31, {}});
  inject(wire::CmSidrRep{});
  inject(wire::CmLap{1, 2, {}});
  inject(wire::CmApr{1, 2, 0});
  b.cm.on_mad(now, {0, b.ipv4().ip, a.ipv4().ip}, std::vector<std::byte>(255));
  b.cm.on_mad(now, {77, b.ipv4().ip, a.ipv4().ip}, wire::build_cm({1, wire::CmReq{}}));
  CHECK(silent(b.cm));
  CHECK(b.cm.connections().all().empty());
}

TEST_CASE_METHOD(Attack, "A REQ that cannot be meant is refused with its reason") {
  wire::CmReq req;
  req.local_comm_id = 5;
  req.path_mtu = 5;
  const auto reason = [&] {
    inject(req);
    return next<wire::CmRej>(b.cm).reason;
  };
  CHECK(reason() == wire::cm_reject::kInvalidServiceId);
  req.path_mtu = 6;
  CHECK(reason() == wire::cm_reject::kInvalidMtu);
  req.path_mtu = 0;
  CHECK(reason() == wire::cm_reject::kInvalidMtu);
  req.transport = wire::CmTransport::rd;
  CHECK(reason() == wire::cm_reject::kInvalidTransportType);
  CHECK(b.cm.connections().all().empty());
}

TEST_CASE_METHOD(Attack, "Another host, or other numbers, change nothing of a connection") {
  const Pair pair = connected(*this);
  const Connection before = *b.connection(pair.server);
  inject_from_stranger(wire::CmDreq{before.remote_id, before.id, {}, {}});
  inject(wire::CmDreq{before.remote_id + 1, before.id, {}, {}});
  wire::CmRej rej;
  rej.local_comm_id = before.remote_id;
  rej.remote_comm_id = before.id;
  inject_from_stranger(rej);
  rej.local_comm_id += 1;
  inject(rej);
  CHECK(b.connection(pair.server)->state == ConnectionState::established);
  CHECK_FALSE(b.take());
}

TEST_CASE_METHOD(Attack, "Who claims a peer's GUID, number and QP takes none of them away") {
  const Pair pair = connected(*this);
  auto req = sent_as<wire::CmReq>(0);
  SECTION("for a connection of its own") {
    wire::build_cma_header({false, 1234, stranger(), b.ipv4().ip}, req.private_data);
    inject_from_stranger(req);
    CHECK(silent(b.cm));
    const RdmaEvent request = b.expect(EventType::connect_request);
    CHECK((*b.cm.query(kProgram, request.id))->destination->ip == stranger());
  }
  SECTION("for a connection to the peer that did not ask") {
    inject_from_stranger(req);
    CHECK(next<wire::CmRej>(b.cm).reason == wire::cm_reject::kInvalidServiceId);
    CHECK_FALSE(b.take());
  }
  CHECK(b.connection(pair.server)->state == ConnectionState::established);
}

TEST_CASE_METHOD(Attack, "An alternate path is refused, and the connection stays") {
  const Pair pair = connected(*this);
  const Connection& connection = *b.connection(pair.server);
  inject(wire::CmLap{connection.remote_id, connection.id, {}});
  CHECK(next<wire::CmApr>(b.cm).status == wire::kAprUnsupported);
  CHECK(b.connection(pair.server)->state == ConnectionState::established);
}

TEST_CASE("A flood of REQs meets a bound") {
  RdmaLimits limits;
  limits.connections.max_connections = 10;
  limits.shares = 1;
  Hosts hosts(1, {}, limits);
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  OutgoingMad mad;
  REQUIRE(hosts.a.cm.next_mad(mad));
  wire::CmMessage message;
  REQUIRE(wire::parse_cm(mad.mad, message) == wire::CmParseError::none);
  auto req = std::get<wire::CmReq>(message.body);
  const Route route{0, hosts.b.ipv4().ip, hosts.a.ipv4().ip};
  for (uint32_t i = 0; i < 100; ++i) {
    req.local_comm_id += 1;
    req.local_qpn.value += 1;
    hosts.b.cm.on_mad(hosts.now, route, wire::build_cm({1, req}));
  }
  CHECK(hosts.b.cm.connections().all().size() == 10);
  CHECK(next<wire::CmRej>(hosts.b.cm).reason == wire::cm_reject::kNoResources);
}

TEST_CASE("A program has its share of what all share, whatever connections it makes") {
  RdmaLimits limits;
  limits.max_ids = 40;
  limits.max_channels = 40;
  Hosts hosts(1, {}, limits);
  RdmaCm& cm = hosts.b.cm;
  constexpr OwnerId kFirst = 71, kSecond = 72, kOther = 73;
  cm.set_program(kFirst, 4000);
  cm.set_program(kSecond, 4000);
  cm.set_program(kOther, 5000);
  struct Silent final : EventNotifier {
    void notify() noexcept override {}
  };
  const auto open = [&](OwnerId owner) {
    return cm.open_channel(owner, std::make_unique<Silent>());
  };
  const auto make = [&](OwnerId owner, ChannelId channel) {
    return cm.create_id(owner, channel, 1, port_space::kTcp, qp_type::kRc);
  };
  const ChannelId first = *open(kFirst), second = *open(kSecond), other = *open(kOther);
  for (int i = 0; i < 10; ++i) REQUIRE(make(i % 2 ? kFirst : kSecond, i % 2 ? first : second));
  CHECK(make(kFirst, first).error() == ENOMEM);
  CHECK(make(kSecond, second).error() == ENOMEM);
  CHECK(make(kOther, other));
  for (int i = 2; i < 10; ++i) REQUIRE(open(kFirst));
  CHECK(open(kSecond).error() == ENOMEM);
  CHECK(open(kOther));
  cm.close_owner(0, kFirst);
  CHECK(make(kSecond, second));
  CHECK(open(kSecond));
}

TEST_CASE("A process that the NIC does not know is a program by itself") {
  RdmaLimits limits;
  limits.max_channels = 8;
  Hosts hosts(1, {}, limits);
  RdmaCm& cm = hosts.b.cm;
  struct Silent final : EventNotifier {
    void notify() noexcept override {}
  };
  const auto open = [&](OwnerId owner) {
    return cm.open_channel(owner, std::make_unique<Silent>());
  };
  constexpr OwnerId kFirst = 71, kOther = 72;
  cm.set_program(kFirst, 0);
  cm.set_program(kOther, 0);
  for (int i = 0; i < 2; ++i) REQUIRE(open(kFirst));
  CHECK(open(kFirst).error() == ENOMEM);
  CHECK(open(kOther));
}

TEST_CASE("What a peer must not guess comes from the source of random numbers") {
  uint64_t drawn = 0;
  const RandomSource source = [&drawn] { return 0x1234500 + drawn++; };
  Connections ours(source, {});
  REQUIRE(drawn == 1);  // the communication ids begin there
  wire::CmReq request;
  request.path_mtu = 5;
  REQUIRE(ours.connect(0, {}, request));
  OutgoingMad mad;
  REQUIRE(ours.next_mad(mad));
  wire::CmMessage message;
  REQUIRE(wire::parse_cm(mad.mad, message) == wire::CmParseError::none);
  const auto& req = std::get<wire::CmReq>(message.body);
  CHECK(req.local_comm_id == 0x1234501);
  CHECK(req.starting_psn == wire::Psn(0x234501));
  CHECK(req.primary.flow_label == 0x34502);
  CHECK(drawn == 3);
}

}  // namespace
}  // namespace rocemu::cm::test
