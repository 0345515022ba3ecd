// Both ends of a connection, once its first packet has come.
#include "tests/unit/inspection/world.h"

using namespace rocemu;
using namespace rocemu::inspection;
using transport::WorkOpcode;

TEST_CASE("Each end is told what the other was set to") {
  World world;
  Pair pair(world);
  pair.a.connect(pair.at_a, pair.b, pair.at_b, [](device::QpAttr& attr) {
    attr.path_mtu = 5;
    attr.max_rd_atomic = 16;
  });
  pair.b.connect(pair.at_b, pair.a, pair.at_a, [](device::QpAttr& attr) {
    attr.path_mtu = 3;
    attr.max_dest_rd_atomic = 1;
    attr.timeout = 0;
  });
  CHECK_FALSE(pair.a.report(pair.at_a).meeting.met);
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, 1, 8));
  world.run();

  const Meeting at_a = pair.a.report(pair.at_a).meeting;
  const Meeting at_b = pair.b.report(pair.at_b).meeting;
  REQUIRE(at_a.met);
  REQUIRE(at_b.met);
  CHECK(at_a.own.path_mtu == 5);
  CHECK(at_a.peers.path_mtu == 3);
  CHECK(at_a.peers.max_dest_rd_atomic == 1);
  CHECK(at_a.peers.timeout == 0);
  CHECK(at_a.peer == QpPlace{1, pair.at_b.qpn});
  CHECK(at_a.own_gid == pair.a.node.gid());
  CHECK(at_a.peer_gid == pair.b.node.gid());
  CHECK(at_b.own.path_mtu == 3);
  CHECK(at_b.peers.path_mtu == 5);
  CHECK(at_b.peer_has_begun);
  CHECK(at_a.own_has_begun);
}

TEST_CASE("What is known of a peer stays when that is destroyed, and goes with a reset") {
  World world;
  Pair pair(world);
  pair.connect();
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, 1, 8));
  world.run();
  REQUIRE(pair.b.hca.destroy_qp(pair.b.context, pair.at_b.qp));
  CHECK(pair.a.report(pair.at_a).meeting.met);
  pair.a.reset(pair.at_a);
  CHECK_FALSE(pair.a.report(pair.at_a).meeting.met);
}

TEST_CASE("An end that can receive but not send yet is looked at again") {
  World world;
  Pair pair(world);
  pair.a.connect(pair.at_a, pair.b, pair.at_b);
  device::QpAttr attr = Program::usual_attributes(pair.at_b, pair.a, pair.at_a);
  attr.timeout = 17;
  attr.sq_psn = 4321;
  pair.b.to_ready_to_receive(pair.at_b, attr);
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, 1, 8));
  world.run();
  CHECK(pair.a.report(pair.at_a).meeting.met);
  CHECK(pair.a.report(pair.at_a).meeting.peers.timeout == 0);
  pair.b.to_ready_to_send(pair.at_b, attr);
  CHECK(pair.a.report(pair.at_a).meeting.peers.timeout == 17);
  CHECK(pair.a.report(pair.at_a).meeting.peers.sq_psn == 4321);
  CHECK(pair.b.report(pair.at_b).meeting.own.timeout == 17);
  CHECK_FALSE(pair.a.report(pair.at_a).meeting.peer_has_begun);
}

TEST_CASE("A first packet with another PSN than the one expected still says who it is from") {
  World world;
  Pair pair(world);
  pair.a.connect(pair.at_a, pair.b, pair.at_b, [](device::QpAttr& attr) { attr.sq_psn = 700; });
  pair.b.connect(pair.at_b, pair.a, pair.at_a, [](device::QpAttr& attr) { attr.rq_psn = 800; });
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, 1, 8));
  world.run();
  const Meeting at_b = pair.b.report(pair.at_b).meeting;
  CHECK(at_b.peer_has_begun);
  CHECK(at_b.peers.sq_psn == 700);
  CHECK(at_b.own.rq_psn == 800);
}

TEST_CASE("An end that sends from another address than the peer expects is found all the same") {
  World world;
  Pair pair(world);
  device::PortConfig port = pair.a.hca.config().port;
  wire::Gid other = port.gids[0].gid;
  other.bytes[12] ^= 1;
  port.gids.push_back({other, 96});
  pair.a.hca.set_port(port);
  pair.a.connect(pair.at_a, pair.b, pair.at_b,
                 [](device::QpAttr& attr) { attr.ah.sgid_index = 1; });
  pair.b.connect(pair.at_b, pair.a, pair.at_a);
  pair.a.post(pair.at_a, reach(pair.a, pair.b, WorkOpcode::write, 1, 8));
  world.run();
  const Meeting at_a = pair.a.report(pair.at_a).meeting;
  REQUIRE(at_a.met);
  CHECK(at_a.own_gid == other);
  CHECK(at_a.peers.ah.dgid == port.gids[0].gid);
}

TEST_CASE("A QP whose number was given with its bytes swapped is found") {
  World world;
  Pair pair(world);
  const uint32_t swapped = __builtin_bswap32(pair.at_b.qpn.value) >> 8;
  REQUIRE(swapped != pair.at_b.qpn.value);
  pair.a.connect(pair.at_a, pair.b, pair.at_b,
                 [&](device::QpAttr& attr) { attr.dest_qp_num = swapped; });
  pair.b.connect(pair.at_b, pair.a, pair.at_a);
  pair.a.post(pair.at_a, message(pair.a, 1));
  world.run();
  CHECK(pair.a.report(pair.at_a).swapped_peer == pair.at_b.qpn);
  CHECK(pair.b.report(pair.at_b).swapped_peer == wire::Qpn{});
}

TEST_CASE("Of a QP that there is not nothing is said") {
  World world;
  Program program(world, 0);
  CHECK(world.inspection.describe_qp(0, program.context, 99).error() == ENOENT);
  CHECK(world.inspection.describe_qp(0, 4711, 1).error() == ENOENT);
}
