// What is lost, repeated, late or without answer.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

TEST_CASE("Nobody answers: unreachable after all repetitions, in bounded time") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  hosts.faults.loss = 1;
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run(60'000 * kMs);
  CHECK(hosts.a.expect(EventType::unreachable).status == -ETIMEDOUT);
  CHECK(hosts.mads == 17);  // the REQ, 15 times again, and a REJ that gives up
}

TEST_CASE("A program that takes its time is waited for: its host says that it is there") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run(300'000 * kMs);
  CHECK_FALSE(hosts.a.take());
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  CHECK_FALSE(hosts.b.take());
  REQUIRE(hosts.b.accept(server, 3) == 0);
  hosts.run();
  hosts.a.expect(EventType::connect_response);
  // So is one that does not confirm.
  hosts.run(300'000 * kMs);
  CHECK_FALSE(hosts.b.take());
  REQUIRE(hosts.a.confirm(client) == 0);
  hosts.run();
  hosts.b.expect(EventType::established);
}

TEST_CASE("Nobody waits longer for an answer behind those who have been told to wait") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const auto ask = [&] {
    const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
    REQUIRE(hosts.a.connect(client, with_data("", static_cast<uint32_t>(client))) == 0);
    return client;
  };
  for (int i = 0; i < 100; ++i) ask();
  hosts.run(1000 * kMs);
  const IdHandle late = ask();
  CHECK(hosts.a.connection(late)->retransmission.wait_ns < 51 * kMs);
}

TEST_CASE("A lost RTU is sent again when the REP comes again") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  REQUIRE(hosts.b.accept(server, 3) == 0);
  hosts.run();
  hosts.faults.loss = 1;
  REQUIRE(hosts.a.confirm(client) == 0);
  hosts.run();
  hosts.faults.loss = 0;
  hosts.run(5000 * kMs);
  hosts.b.expect(EventType::established);
}

TEST_CASE("A peer that has vanished leaves a disconnect that times out") {
  Hosts hosts;
  const Pair pair = connected(hosts);
  hosts.faults.loss = 1;
  REQUIRE(hosts.a.disconnect(pair.client) == 0);
  hosts.run(60'000 * kMs);
  CHECK(hosts.a.expect(EventType::disconnected).status == -ETIMEDOUT);
}

TEST_CASE("A destroyed id's connection ends at its peer although messages are lost") {
  Hosts hosts;
  const Pair pair = connected(hosts);
  hosts.faults.loss = 1;
  hosts.a.destroy(pair.client);
  hosts.run();
  hosts.faults.loss = 0;
  hosts.run(5000 * kMs);
  hosts.b.expect(EventType::disconnected);
  hosts.b.destroy(pair.server);
  hosts.b.destroy(pair.listener);
  CHECK(hosts.settle(60'000 * kMs));
  CHECK(hosts.clean());
}

}  // namespace
}  // namespace rocemu::cm::test
