// Datagram services (SIDR) and multicast groups.
#include <catch2/catch.hpp>
#include <cerrno>

#include "emulator/wire/cm_message.h"
#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

constexpr uint16_t kUdp = port_space::kUdp;
constexpr uint8_t kUd = qp_type::kUd;

TEST_CASE("A datagram service says its QP and Q_Key") {
  Hosts hosts;
  const IdHandle listener = hosts.b.listener(1, hosts.b.ipv4(7000), 0, kUdp, kUd);
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000), kUdp, kUd);
  REQUIRE(hosts.a.connect(client, with_data("who", 0x11)) == 0);
  hosts.run();
  const RdmaEvent request = hosts.b.expect(EventType::connect_request);
  CHECK(text_of(datagram(request).data) == "who");
  CHECK(datagram(request).data.length == 180);
  REQUIRE(hosts.b.accept(request.id, 3, with_data("me", 0x22)) == 0);
  hosts.run();
  const RdmaEvent answer = hosts.a.expect(EventType::established);
  CHECK(datagram(answer).qpn == 0x22);
  CHECK(datagram(answer).qkey == kDatagramQkey);
  CHECK(datagram(answer).address.dgid == hosts.b.ipv4().ip);
  CHECK(text_of(datagram(answer).data) == "me");
  CHECK(hosts.a.cm.qp_setup(kProgram, client, 1)->qkey == kDatagramQkey);
  hosts.a.destroy(client);
  hosts.b.destroy(request.id);
  hosts.b.destroy(listener);
  CHECK(hosts.settle(20'000 * kMs));
  CHECK(hosts.clean());
}

TEST_CASE("A datagram service that refuses, or that nobody offers") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000), 0, kUdp, kUd);
  hosts.b.listener(1, hosts.b.ipv4(7001));
  const auto attempt = [&](uint16_t port) {
    const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(port), kUdp, kUd);
    REQUIRE(hosts.a.connect(client) == 0);
    hosts.run();
    if (const auto request = hosts.b.take())
      REQUIRE(hosts.b.cm.reject(hosts.now, kProgram, request->id, 0, {}) == 0);
    hosts.run();
    return hosts.a.expect(EventType::unreachable).status;
  };
  CHECK(attempt(7000) == wire::cm_sidr::kRejected);
  CHECK(attempt(7001) == wire::cm_sidr::kUnsupported);
  // Of the one that was told so at once, nothing is kept: requests to nobody fill no table.
  CHECK(hosts.b.cm.connections().all().size() == 1);
}

TEST_CASE("A lost answer is given again, and the program is asked once") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000), 0, kUdp, kUd);
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000), kUdp, kUd);
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run(1000 * kMs);  // asked several times
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  CHECK_FALSE(hosts.b.take());
  hosts.faults.loss = 1;
  REQUIRE(hosts.b.accept(server, 3) == 0);
  hosts.run();
  hosts.faults.loss = 0;
  hosts.run(5000 * kMs);
  hosts.a.expect(EventType::established);
  CHECK_FALSE(hosts.b.take());
}

TEST_CASE("A group is joined by its address, for as long as its id") {
  Hosts hosts;
  RdmaCm& cm = hosts.a.cm;
  SocketAddress group = hosts.a.ipv4();
  group.ip.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 1, 1};
  const IdHandle id = hosts.a.new_id(1, kUdp, kUd);
  CHECK(cm.join(kProgram, id, 7, group).error() == EINVAL);  // of which device?
  REQUIRE(cm.bind(kProgram, id, hosts.a.ipv4(7000)) == 0);
  CHECK(cm.join(kProgram, id, 7, hosts.a.ipv4()).error() == EINVAL);
  const GroupHandle joined = *cm.join(kProgram, id, 7, group);
  const RdmaEvent event = hosts.a.expect(EventType::multicast_join);
  CHECK(event.uid == 7);
  CHECK(datagram(event).qpn == 0xffffff);
  CHECK(datagram(event).qkey == kDatagramQkey);
  CHECK(datagram(event).address.dgid == group.ip);
  CHECK(cm.leave(kProgram, joined)->reported == 1);
  CHECK(cm.leave(kProgram, joined).error() == ENOENT);
  const GroupHandle unseen = *cm.join(kProgram, id, 8, group);
  CHECK(cm.leave(kProgram, unseen)->withdrawn == 1);
  CHECK(cm.join(kProgram, id, 9, group).has_value());
  hosts.a.destroy(id);
  CHECK(cm.group_count() == 0);
}

}  // namespace
}  // namespace rocemu::cm::test
