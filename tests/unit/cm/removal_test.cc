// A device that is lost, and its ids.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

constexpr uint32_t kDevice = 0;

SocketAddress any() {
  SocketAddress address;
  address.ip.bytes[10] = address.ip.bytes[11] = 0xff;
  return address;
}

TEST_CASE("An id whose device is lost hears of it once, and can only be destroyed") {
  Hosts hosts;
  const Pair pair = connected(hosts);
  hosts.a.cm.remove_device(hosts.now, kDevice);
  const RdmaEvent event = hosts.a.expect(EventType::device_removal);
  CHECK(event.id == pair.client);
  CHECK(event.status == 0);
  hosts.a.cm.remove_device(hosts.now, kDevice);
  CHECK(!hosts.a.take());
  CHECK(hosts.a.disconnect(pair.client) == ENXIO);
  CHECK(hosts.a.connect(pair.client) == ENXIO);
  CHECK(hosts.a.accept(pair.client, 1) == ENXIO);
  CHECK(hosts.a.cm.reject(hosts.now, kProgram, pair.client, 0, {}) == ENXIO);
  CHECK(hosts.a.cm.resolve_route(kProgram, pair.client) == ENXIO);
  CHECK(hosts.a.cm.qp_setup(kProgram, pair.client, 6).error() == ENXIO);
  CHECK(hosts.a.cm.query(kProgram, pair.client).error() == ENXIO);
  CHECK(hosts.a.cm.migrate_id(kProgram, pair.client, hosts.a.channel, hosts.a.channel).error() ==
        ENXIO);
  const auto tally = hosts.a.cm.destroy_id(hosts.now, kProgram, pair.client);
  REQUIRE(tally);
  CHECK(tally->withdrawn == 0);
  CHECK(hosts.a.cm.ids().empty());
}

TEST_CASE("What is not tied to a lost device goes on, and its listeners serve when it is back") {
  Hosts hosts;
  const IdHandle everywhere = hosts.b.listener(1, any());
  const uint16_t port = (*hosts.b.cm.query(kProgram, everywhere))->source->port;
  const IdHandle here = hosts.b.listener(2, hosts.b.ipv4(7000));
  const IdHandle idle = hosts.b.new_id(3);
  hosts.b.cm.remove_device(hosts.now, kDevice);
  CHECK(hosts.b.expect(EventType::device_removal).id == here);
  CHECK(!hosts.b.take());
  CHECK(hosts.b.cm.bind(kProgram, idle, hosts.b.ipv4(7000)) == ENODEV);
  CHECK(hosts.b.cm.resolve_address(kProgram, idle, std::nullopt, hosts.a.ipv4(7000)) == 0);
  CHECK(hosts.b.expect(EventType::address_error).status == -ENODEV);

  hosts.b.cm.return_device(kDevice);
  CHECK(hosts.b.cm.bind(kProgram, idle, hosts.b.ipv4(7000)) == 0);  // the port is free as well
  const IdHandle client = hosts.a.resolved(4, hosts.b.ipv4(port));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  CHECK(hosts.b.expect(EventType::connect_request).uid == 1);
}

TEST_CASE("A connection that nobody has accepted yet goes with its device, and says nothing") {
  Hosts hosts;
  hosts.b.listener(1, any());
  const uint16_t port = hosts.b.cm.ids().begin()->second.source->port;
  const IdHandle first = hosts.a.resolved(2, hosts.b.ipv4(port));
  const IdHandle second = hosts.a.resolved(3, hosts.b.ipv4(port));
  REQUIRE(hosts.a.connect(first, with_data("", 0x11)) == 0);
  hosts.run();
  const RdmaEvent seen = hosts.b.expect(EventType::connect_request);
  REQUIRE(hosts.a.connect(second, with_data("", 0x12)) == 0);
  hosts.run();
  hosts.b.cm.remove_device(hosts.now, kDevice);
  const RdmaEvent unseen = hosts.b.expect(EventType::connect_request);
  CHECK(!hosts.b.take());
  for (const RdmaEvent& request : {seen, unseen}) {
    CHECK(hosts.b.accept(request.id, 4) == ENXIO);
    hosts.b.destroy(request.id);
  }
  CHECK(hosts.b.cm.ids().size() == 1);
}

}  // namespace
}  // namespace rocemu::cm::test
