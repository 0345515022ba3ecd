// How connections come and go when nothing gets lost.
#include <catch2/catch.hpp>
#include <cerrno>

#include "emulator/wire/cm_message.h"
#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

namespace access = verbs::access;

TEST_CASE("A connection: REQ, REP, RTU, and what both sides set their QPs to") {
  Hosts hosts;
  const IdHandle listener = hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  ConnectionParameters ask = with_data("please", 0x11);
  ask.responder_resources = 3;
  ask.initiator_depth = 4;
  ask.retry_count = 6;
  ask.rnr_retry_count = 5;
  REQUIRE(hosts.a.connect(client, ask) == 0);
  hosts.run();

  const RdmaEvent request = hosts.b.expect(EventType::connect_request);
  CHECK(request.uid == 1);
  CHECK(request.counted == listener);
  CHECK(text_of(stream(request).data) == "please");
  CHECK(stream(request).data.length == 56);
  CHECK(stream(request).qpn == 0x11);
  CHECK(stream(request).responder_resources == 4);  // the peer's view
  CHECK(stream(request).initiator_depth == 3);
  const RdmaId& child = **hosts.b.cm.query(kProgram, request.id);
  CHECK(child.source->ip == hosts.b.ipv4().ip);
  CHECK(child.source->port == 7000);
  CHECK(child.destination->ip == hosts.a.ipv4().ip);

  ConnectionParameters grant = with_data("granted", 0x22);
  grant.responder_resources = 2;
  grant.initiator_depth = 1;
  grant.rnr_retry_count = 7;
  const QpSetup before = *hosts.b.cm.qp_setup(kProgram, request.id, 3);
  REQUIRE(hosts.b.accept(request.id, 3, grant) == 0);
  hosts.run();
  const RdmaEvent response = hosts.a.expect(EventType::connect_response);
  CHECK(text_of(stream(response).data) == "granted");
  CHECK(stream(response).data.length == 196);
  CHECK(stream(response).qpn == 0x22);

  const QpSetup client_rtr = *hosts.a.cm.qp_setup(kProgram, client, 2);
  const QpSetup client_rts = *hosts.a.cm.qp_setup(kProgram, client, 3);
  const QpSetup server_rtr = *hosts.b.cm.qp_setup(kProgram, request.id, 2);
  const QpSetup server_rts = *hosts.b.cm.qp_setup(kProgram, request.id, 3);
  // As Linux' ib_cm where the device serves FLUSH.
  CHECK(hosts.a.cm.qp_setup(kProgram, client, 1)->access_flags ==
        (access::kRemoteWrite | access::kRemoteRead | access::kRemoteAtomic | access::kFlushGlobal |
         access::kFlushPersistent));
  CHECK(client_rtr.destination_qpn == 0x22);
  CHECK(server_rtr.destination_qpn == 0x11);
  CHECK(client_rtr.receive_psn == server_rts.send_psn);
  CHECK(server_rtr.receive_psn == client_rts.send_psn);
  CHECK(before.send_psn == server_rts.send_psn);
  // Each side tells the other where the other is to begin.
  CHECK(hosts.sent_as<wire::CmReq>(0).starting_psn.value() == server_rts.send_psn);
  CHECK(hosts.sent_as<wire::CmRep>(1).starting_psn.value() == client_rts.send_psn);
  CHECK(client_rtr.max_dest_rd_atomic == 1);
  CHECK(client_rts.max_rd_atomic == 2);
  CHECK(server_rtr.max_dest_rd_atomic == 2);
  CHECK(server_rts.max_rd_atomic == 1);
  CHECK(client_rts.retry_count == 6);
  CHECK(server_rts.retry_count == 6);
  CHECK(client_rts.rnr_retry == 7);
  CHECK(server_rts.rnr_retry == 5);
  CHECK(client_rtr.address.dgid == hosts.b.ipv4().ip);
  CHECK(client_rtr.address.flow_label == server_rtr.address.flow_label);

  REQUIRE(hosts.a.confirm(client) == 0);
  hosts.run();
  CHECK(hosts.b.expect(EventType::established).uid == 3);
  CHECK(hosts.mads == 3);
}

TEST_CASE("A connection has the MTU and the addresses that the device has now") {
  Hosts hosts;
  Interface changed = hosts.a.cm.interfaces().device(0);
  changed.active_mtu = 3;
  const wire::Gid gone = changed.addresses.back().gid;
  changed.addresses.pop_back();
  hosts.a.cm.set_interface(0, changed);
  CHECK_FALSE(hosts.a.cm.interfaces().find(gone));
  CHECK_FALSE(hosts.a.cm.interfaces().find(wire::Gid{}));
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  CHECK(hosts.sent_as<wire::CmReq>(0).path_mtu == 3);
}

TEST_CASE(
    "A connection with more than the device's MTU is refused, and its listener hears nothing") {
  Hosts hosts;
  Interface small = hosts.b.cm.interfaces().device(0);
  small.active_mtu = 3;
  hosts.b.cm.set_interface(0, small);
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  CHECK_FALSE(hosts.b.take());
  CHECK(hosts.a.expect(EventType::rejected).status == wire::cm_reject::kInvalidMtu);
  hosts.a.destroy(client);
  CHECK(hosts.b.cm.connections().all().empty());
}

TEST_CASE("The timeout that a client sets is its peer's, too") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  constexpr uint32_t kAckTimeout = 3;
  constexpr std::array timeout{std::byte{14}};
  REQUIRE(hosts.a.cm.set_option(kProgram, client, 0, kAckTimeout, timeout) == 0);
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  CHECK(hosts.sent_as<wire::CmReq>(0).primary.local_ack_timeout == 14);
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  REQUIRE(hosts.b.accept(server, 3) == 0);
  hosts.run();
  hosts.a.expect(EventType::connect_response);
  CHECK(hosts.a.cm.qp_setup(kProgram, client, 3)->timeout == 14);
  CHECK(hosts.b.cm.qp_setup(kProgram, server, 3)->timeout == 14);
}

// As Linux' cm_format_rep() and cm_rep_get_qpn() have it.
TEST_CASE("The REP of an XRC target has its number where others have an EE context") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000), 0, port_space::kTcp, qp_type::kXrcReceive);
  const IdHandle client =
      hosts.a.resolved(2, hosts.b.ipv4(7000), port_space::kTcp, qp_type::kXrcSend);
  REQUIRE(hosts.a.connect(client, with_data("", 0x11)) == 0);
  hosts.run();
  const RdmaEvent request = hosts.b.expect(EventType::connect_request);
  CHECK(stream(request).qpn == 0x11);
  REQUIRE(hosts.b.accept(request.id, 3, with_data("", 0x22)) == 0);
  hosts.run();
  CHECK(hosts.b.connection(request.id)->qp.local_qpn.value == 0x22);
  const auto rep = hosts.sent_as<wire::CmRep>(1);
  CHECK(rep.local_eecn == 0x22);
  CHECK(rep.local_qpn.value == 0);
  CHECK(rep.srq);
  CHECK(stream(hosts.a.expect(EventType::connect_response)).qpn == 0x22);
  CHECK(hosts.a.cm.qp_setup(kProgram, client, 2)->destination_qpn == 0x22);
}

TEST_CASE("Either side ends a connection, and both hear of it") {
  const bool by_client = GENERATE(true, false);
  Hosts hosts;
  const Pair pair = connected(hosts);
  if (by_client) {
    CHECK(hosts.a.disconnect(pair.client) == 0);
  } else {
    CHECK(hosts.b.disconnect(pair.server) == 0);
  }
  hosts.run();
  CHECK(hosts.a.expect(EventType::disconnected).status == 0);
  CHECK(hosts.b.expect(EventType::disconnected).status == 0);
  // Asking again, or asking as the one who was told, is no mistake.
  CHECK(hosts.a.disconnect(pair.client) == 0);
  CHECK(hosts.b.disconnect(pair.server) == 0);
  hosts.run(2000 * kMs);
  hosts.a.expect(EventType::timewait_exit);
  hosts.b.expect(EventType::timewait_exit);
  hosts.a.destroy(pair.client);
  hosts.b.destroy(pair.server);
  hosts.b.destroy(pair.listener);
  CHECK(hosts.clean());
}

TEST_CASE("Both sides end a connection at once") {
  Hosts hosts;
  const Pair pair = connected(hosts);
  CHECK(hosts.a.disconnect(pair.client) == 0);
  CHECK(hosts.b.disconnect(pair.server) == 0);
  hosts.run();
  hosts.a.expect(EventType::disconnected);
  hosts.b.expect(EventType::disconnected);
  CHECK_FALSE(hosts.a.take());
  CHECK_FALSE(hosts.b.take());
}

TEST_CASE("A rejection carries its reason and the consumer's data") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  CHECK(hosts.b.cm.reject(hosts.now, kProgram, server, 1, {}) == EINVAL);
  REQUIRE(hosts.b.cm.reject(hosts.now, kProgram, server, 0, with_data("no").data) == 0);
  hosts.run();
  const RdmaEvent rejected = hosts.a.expect(EventType::rejected);
  CHECK(rejected.status == wire::cm_reject::kConsumerDefined);
  CHECK(text_of(stream(rejected).data) == "no");
  CHECK(stream(rejected).data.length == 148);
  CHECK(hosts.b.accept(server, 3) == EINVAL);
  CHECK(hosts.b.cm.reject(hosts.now, kProgram, server, 0, {}) == EINVAL);
}

TEST_CASE("Nobody listens: at that port, in that port space, or with that type of QP") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const auto attempt = [&](uint16_t port, uint16_t space, uint8_t type) {
    const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(port), space, type);
    REQUIRE(hosts.a.connect(client) == 0);
    hosts.run();
    return hosts.a.expect(EventType::rejected).status;
  };
  CHECK(attempt(7001, port_space::kTcp, qp_type::kRc) == wire::cm_reject::kInvalidServiceId);
  CHECK(attempt(7000, port_space::kIb, qp_type::kRc) == wire::cm_reject::kInvalidServiceId);
  CHECK(attempt(7000, port_space::kTcp, qp_type::kUc) == wire::cm_reject::kInvalidServiceId);
  CHECK_FALSE(hosts.b.take());
}

// What the kernel does for a program that dies, in each state of its connection.
TEST_CASE("An id that is destroyed takes its connection along") {
  const std::string state = GENERATE("REQ sent", "REQ received", "REP sent", "REP received",
                                     "established, client", "established, server");
  CAPTURE(state);
  Hosts hosts;
  const IdHandle listener = hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  if (state == "REQ sent") {
    hosts.a.destroy(client);
    hosts.run();
    CHECK(hosts.b.accept(server, 3) == EINVAL);
    hosts.b.destroy(server);
  } else if (state == "REQ received") {
    hosts.b.destroy(server);
    hosts.run();
    CHECK(hosts.a.expect(EventType::rejected).status == wire::cm_reject::kConsumerDefined);
    hosts.a.destroy(client);
  } else {
    REQUIRE(hosts.b.accept(server, 3) == 0);
    hosts.run();
    hosts.a.expect(EventType::connect_response);
    if (state == "REP sent") {
      hosts.b.destroy(server);
      hosts.run();
      hosts.a.expect(EventType::rejected);
      hosts.a.destroy(client);
    } else if (state == "REP received") {
      hosts.a.destroy(client);
      hosts.run();
      hosts.b.expect(EventType::rejected);
      hosts.b.destroy(server);
    } else {
      REQUIRE(hosts.a.confirm(client) == 0);
      hosts.run();
      hosts.b.expect(EventType::established);
      if (state == "established, client") {
        hosts.a.destroy(client);
        hosts.run();
        hosts.b.expect(EventType::disconnected);
        hosts.b.destroy(server);
      } else {
        hosts.b.destroy(server);
        hosts.run();
        hosts.a.expect(EventType::disconnected);
        hosts.a.destroy(client);
      }
    }
  }
  hosts.b.destroy(listener);
  CHECK(hosts.settle(60'000 * kMs));
  CHECK(hosts.clean());
}

TEST_CASE("Data that comes before the RTU establishes the connection") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  CHECK(hosts.b.cm.notify(hosts.now, kProgram, server, 4) == EINVAL);
  REQUIRE(hosts.b.accept(server, 3) == 0);
  CHECK(hosts.b.cm.notify(hosts.now, kProgram, server, 1) == EINVAL);
  CHECK(hosts.b.cm.notify(hosts.now, kProgram, server, 4) == 0);
  hosts.b.expect(EventType::established);
  CHECK(hosts.b.cm.notify(hosts.now, kProgram, server, 4) == EISCONN);
}

TEST_CASE("A QP that asks again while its old connection stands has forgotten it") {
  Hosts hosts;
  const Pair pair = connected(hosts);
  const IdHandle again = hosts.a.resolved(9, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(again, with_data("", 0x11)) == 0);
  hosts.run();
  CHECK(hosts.b.expect(EventType::disconnected).counted == pair.server);
  // The refusal of the new one, and the old one's end.
  hosts.a.expect(EventType::rejected);
  hosts.a.expect(EventType::disconnected);
}

TEST_CASE("A full backlog lets the peer ask again until there is room") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000), 1);
  const IdHandle first = hosts.a.resolved(2, hosts.b.ipv4(7000));
  const IdHandle second = hosts.a.resolved(3, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(first, with_data("", 1)) == 0);
  REQUIRE(hosts.a.connect(second, with_data("", 2)) == 0);
  hosts.run(1000 * kMs);
  CHECK(stream(hosts.b.expect(EventType::connect_request)).qpn == 1);
  CHECK_FALSE(hosts.b.take());
  hosts.run(2000 * kMs);
  CHECK(stream(hosts.b.expect(EventType::connect_request)).qpn == 2);
  CHECK_FALSE(hosts.a.take());
}

TEST_CASE("A backlog that stays full is unreachable in the end") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000), 1);
  const IdHandle first = hosts.a.resolved(2, hosts.b.ipv4(7000));
  const IdHandle second = hosts.a.resolved(3, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(first, with_data("", 1)) == 0);
  hosts.run();
  REQUIRE(hosts.a.connect(second, with_data("", 2)) == 0);
  hosts.run(60'000 * kMs);
  const RdmaEvent event = hosts.a.expect(EventType::unreachable);
  CHECK(event.uid == 3);
  CHECK(event.status == -ETIMEDOUT);
  CHECK_FALSE(hosts.a.take());
}

TEST_CASE("A program that listens anew hears of its clients that were refused in between") {
  Hosts hosts;
  const auto connect = [&](uint32_t qpn, uint16_t port) {
    REQUIRE(hosts.a.connect(hosts.a.resolved(2, hosts.b.ipv4(port)), with_data("", qpn)) == 0);
    hosts.run();
  };
  const auto listen_again = [&](uint16_t port) {
    const IdHandle id = hosts.b.new_id(1);
    REQUIRE(hosts.b.cm.bind(kProgram, id, hosts.b.ipv4(port)) == 0);
    const auto refused = hosts.b.cm.listen(kProgram, id, 0);
    REQUIRE(refused.has_value());
    hosts.b.destroy(id);
    return *refused;
  };
  const IdHandle served = hosts.b.listener(1, hosts.b.ipv4(7000));
  connect(2, 7000);
  hosts.b.expect(EventType::connect_request);
  hosts.b.destroy(served);
  connect(3, 7000);
  hosts.a.expect(EventType::rejected);
  connect(4, 7001);  // where nobody ever listened
  hosts.a.expect(EventType::rejected);
  CHECK(listen_again(7001) == 0);
  CHECK(listen_again(7000) == 1);
  CHECK(listen_again(7000) == 0);
  // A client that was never served there may just have come too early.
  hosts.b.destroy(hosts.b.listener(1, hosts.b.ipv4(7002)));
  connect(5, 7002);
  hosts.a.expect(EventType::rejected);
  CHECK(listen_again(7002) == 0);
}

}  // namespace
}  // namespace rocemu::cm::test
