// Channels, owners, and how many events about an id were ever reported, on which librdmacm's
// rdma_destroy_id waits.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>

#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

class SilentBell final : public EventNotifier {
 public:
  void notify() noexcept override {}
};

TEST_CASE("Every event rings once, and destroying tells how many were taken and how many not") {
  Hosts hosts;
  const IdHandle id = hosts.a.resolved(1, hosts.a.ipv4(1));
  CHECK(hosts.a.rings == 2);
  REQUIRE(hosts.a.connect(id) == 0);
  hosts.run();  // nobody listens: a rejection waits
  CHECK(hosts.a.rings == 3);
  const EventTally tally = *hosts.a.cm.destroy_id(hosts.now, kProgram, id);
  CHECK(tally.reported == 2);
  CHECK(tally.withdrawn == 1);
  CHECK_FALSE(hosts.a.take());
  CHECK(hosts.a.cm.destroy_id(hosts.now, kProgram, id).error() == ENOENT);
}

TEST_CASE("A listener goes with the requests nobody has seen, which are refused") {
  Hosts hosts;
  const IdHandle listener = hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  CHECK(hosts.b.cm.ids().size() == 2);
  CHECK(hosts.b.cm.destroy_id(hosts.now, kProgram, listener)->withdrawn == 1);
  CHECK(hosts.b.cm.ids().empty());
  hosts.run();
  hosts.a.expect(EventType::rejected);
}

TEST_CASE("A connection cannot be named before the program has heard of it") {
  Hosts hosts;
  RdmaCm& cm = hosts.b.cm;
  const IdHandle listener = hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  REQUIRE(cm.ids().size() == 2);
  const IdHandle unseen = cm.ids().rbegin()->first;
  REQUIRE(unseen != listener);
  CHECK(cm.query(kProgram, unseen).error() == ENOENT);
  CHECK(cm.destroy_id(hosts.now, kProgram, unseen).error() == ENOENT);
  const ChannelId second = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  CHECK(cm.migrate_id(kProgram, unseen, hosts.b.channel, second).error() == ENOENT);
  CHECK(cm.migrate_id(kProgram, listener, hosts.b.channel, second)->withdrawn == 1);
  CHECK(cm.next_event(kProgram, second)->id == unseen);
  CHECK(cm.destroy_id(hosts.now, kProgram, unseen).has_value());
}

TEST_CASE("Of events that were taken back in time the program is to do nothing") {
  class QuickBell final : public EventNotifier {
   public:
    void notify() noexcept override { ++rung_; }
    uint32_t take_back(uint32_t count) noexcept override {
      const uint32_t taken = std::min(count, rung_ - 1);  // the program has taken one meanwhile
      rung_ -= taken;
      return taken;
    }

   private:
    uint32_t rung_ = 0;
  };
  Hosts hosts;
  RdmaCm& cm = hosts.a.cm;
  const ChannelId channel = *cm.open_channel(kProgram, std::make_unique<QuickBell>());
  const IdHandle id = hosts.a.new_id(1);
  REQUIRE(cm.migrate_id(kProgram, id, hosts.a.channel, channel));
  REQUIRE(cm.resolve_address(kProgram, id, std::nullopt, hosts.a.ipv4(1)) == 0);
  REQUIRE(cm.resolve_route(kProgram, id) == 0);
  CHECK(cm.destroy_id(hosts.now, kProgram, id)->withdrawn == 1);
  CHECK_FALSE(cm.next_event(kProgram, channel));
}

TEST_CASE("An id moves to another channel with its events") {
  Hosts hosts;
  RdmaCm& cm = hosts.a.cm;
  const ChannelId second = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  const IdHandle id = hosts.a.new_id(1);
  REQUIRE(cm.resolve_address(kProgram, id, std::nullopt, hosts.a.ipv4(1)) == 0);
  CHECK(cm.migrate_id(kProgram, id, second, hosts.a.channel).error() == ENOENT);
  CHECK(cm.migrate_id(kProgram, id, hosts.a.channel, 99).error() == EBADF);
  const EventTally tally = *cm.migrate_id(kProgram, id, hosts.a.channel, second);
  CHECK(tally.reported == 0);
  CHECK(tally.withdrawn == 1);
  CHECK_FALSE(hosts.a.take());
  CHECK(cm.next_event(kProgram, second)->type == EventType::address_resolved);
  CHECK(cm.migrate_id(kProgram, id, second, hosts.a.channel)->reported == 1);
  CHECK(cm.close_channel(0, kProgram, second) == 0);
  CHECK(cm.ids().size() == 1);
}

// 20000 ids with two events each, 40 of them on a port (to bind one looks at all others of it).
void fill_channel(Hosts& hosts) {
  constexpr uint32_t kReuse = 1;
  constexpr uint64_t kIds = 20'000;
  const std::array<std::byte, sizeof(int)> on{std::byte{1}};
  RdmaCm& cm = hosts.a.cm;
  for (uint64_t uid = 1; uid <= kIds; ++uid) {
    const IdHandle id = hosts.a.new_id(uid);
    REQUIRE(cm.set_option(kProgram, id, 0, kReuse, on) == 0);
    REQUIRE(cm.bind(kProgram, id, hosts.a.ipv4(static_cast<uint16_t>(8000 + uid % 500))) == 0);
    REQUIRE(cm.resolve_address(kProgram, id, std::nullopt, hosts.a.ipv4(1)) == 0);
    REQUIRE(cm.resolve_route(kProgram, id) == 0);
  }
  CHECK(cm.events_lost() == 0);
}

TEST_CASE("A channel with many ids and events goes, and nothing of another one's") {
  RdmaLimits limits;
  limits.max_events_in_all = 40'002;
  limits.shares = 1;
  Hosts hosts(1, {}, limits);
  RdmaCm& cm = hosts.a.cm;
  const ChannelId other = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  const IdHandle kept = *cm.create_id(kProgram, other, 1, port_space::kUdp, qp_type::kUd);
  REQUIRE(cm.bind(kProgram, kept, hosts.a.ipv4(7000)) == 0);
  SocketAddress group = hosts.a.ipv4();
  group.ip.bytes[12] = 239;
  REQUIRE(cm.join(kProgram, kept, 7, group).has_value());
  const IdHandle listener = *cm.create_id(kProgram, other, 2, port_space::kTcp, qp_type::kRc);
  REQUIRE(cm.bind(kProgram, listener, hosts.a.ipv4(7000)) == 0);
  REQUIRE(cm.listen(kProgram, listener, 0) == 0);
  const IdHandle member = hosts.a.new_id(3, port_space::kUdp, qp_type::kUd);
  REQUIRE(cm.bind(kProgram, member, hosts.a.ipv4(7001)) == 0);
  REQUIRE(cm.join(kProgram, member, 8, group).has_value());
  hosts.a.listener(4, hosts.a.ipv4(7001));
  fill_channel(hosts);

  const auto start = std::chrono::steady_clock::now();
  REQUIRE(cm.close_channel(hosts.now, kProgram, hosts.a.channel) == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(cm.ids().size() == 2);
  CHECK(cm.group_count() == 1);
  CHECK(cm.next_event(kProgram, other)->type == EventType::multicast_join);
  CHECK(cm.next_event(kProgram, other).error() == EAGAIN);

  // There is room for as many events again, and what went listens no more.
  hosts.a.channel = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  fill_channel(hosts);
  const IdHandle again = hosts.a.new_id(5);
  CHECK(cm.bind(kProgram, again, hosts.a.ipv4(7000)) == EADDRINUSE);
  CHECK(cm.bind(kProgram, again, hosts.a.ipv4(7001)) == 0);
  CHECK(cm.listen(kProgram, again, 0) == 0);
}

TEST_CASE("With a listener's channel go the requests nobody has seen, which are refused") {
  Hosts hosts;
  RdmaCm& cm = hosts.b.cm;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  for (uint32_t qpn = 2; qpn < 5; ++qpn) {
    const IdHandle client = hosts.a.resolved(qpn, hosts.b.ipv4(7000));
    REQUIRE(hosts.a.connect(client, with_data("", qpn)) == 0);
  }
  hosts.run();
  REQUIRE(cm.ids().size() == 4);
  hosts.b.expect(EventType::connect_request);  // one that the program has seen
  CHECK(cm.close_channel(hosts.now, kProgram, hosts.b.channel) == 0);
  CHECK(cm.ids().empty());
  hosts.run();
  for (int i = 0; i < 3; ++i) hosts.a.expect(EventType::rejected);
}

TEST_CASE("A program cannot name what is another's") {
  constexpr OwnerId kOther = 2;
  Hosts hosts;
  RdmaCm& cm = hosts.a.cm;
  const IdHandle id = hosts.a.new_id(1);
  CHECK(cm.create_id(kOther, hosts.a.channel, 1, port_space::kTcp, qp_type::kRc).error() == EBADF);
  CHECK(cm.bind(kOther, id, hosts.a.ipv4()) == ENOENT);
  CHECK(cm.destroy_id(0, kOther, id).error() == ENOENT);
  CHECK(cm.query(kOther, id).error() == ENOENT);
  CHECK(cm.next_event(kOther, hosts.a.channel).error() == EBADF);
  CHECK(cm.close_channel(0, kOther, hosts.a.channel) == EBADF);
}

TEST_CASE("With a program go all of its channels, ids and ports, and its peers are told") {
  Hosts hosts;
  connected(hosts);
  hosts.b.cm.close_owner(hosts.now, kProgram);
  hosts.run();
  hosts.a.expect(EventType::disconnected);
  CHECK(hosts.b.cm.ids().empty());
  CHECK(hosts.b.cm.channel_count() == 0);
  hosts.a.cm.close_owner(hosts.now, kProgram);
  CHECK(hosts.settle(10'000 * kMs));
  CHECK(hosts.clean());
}

TEST_CASE("Tables are bounded, and what finds no room is said so") {
  RdmaLimits limits;
  limits.shares = 1;
  limits.max_ids = 2;
  limits.max_channels = 1;
  limits.max_events = 1;
  Hosts hosts(1, {}, limits);
  RdmaCm& cm = hosts.a.cm;
  CHECK(cm.open_channel(kProgram, std::make_unique<SilentBell>()).error() == EMFILE);
  const IdHandle first = hosts.a.new_id(1);
  const IdHandle second = hosts.a.new_id(2);
  const auto create = [&] {
    return cm.create_id(kProgram, hosts.a.channel, 3, port_space::kTcp, qp_type::kRc);
  };
  CHECK(create().error() == ENOMEM);
  CHECK(cm.resolve_address(kProgram, first, std::nullopt, hosts.a.ipv4(1)) == 0);
  CHECK(cm.resolve_address(kProgram, second, std::nullopt, hosts.a.ipv4(1)) == 0);
  CHECK(cm.events_lost() == 1);
  hosts.a.destroy(first);
  CHECK(create().has_value());
}

TEST_CASE(
    "What waits in all channels together is bounded, and room comes back with what is taken") {
  RdmaLimits limits;
  limits.max_events_in_all = 2;
  limits.shares = 1;
  Hosts hosts(1, {}, limits);
  RdmaCm& cm = hosts.a.cm;
  SocketAddress nobody = hosts.a.ipv4(1);
  nobody.ip.bytes[14] = 9;
  const IdHandle id = hosts.a.new_id(1);
  const auto fail = [&] { CHECK(cm.resolve_address(kProgram, id, std::nullopt, nobody) == 0); };
  for (int i = 0; i < 5; ++i) fail();
  CHECK(cm.events_lost() == 3);
  hosts.a.expect(EventType::address_error);
  fail();
  CHECK(cm.events_lost() == 3);
  const ChannelId second = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  CHECK(cm.migrate_id(kProgram, id, hosts.a.channel, second)->withdrawn == 2);
  fail();
  CHECK(cm.events_lost() == 4);
  CHECK(cm.destroy_id(0, kProgram, id)->withdrawn == 2);
  const IdHandle other = hosts.a.new_id(2);
  CHECK(cm.resolve_address(kProgram, other, std::nullopt, nobody) == 0);
  CHECK(cm.events_lost() == 4);
}

TEST_CASE("A new connection's events are kept from the program until it has accepted") {
  Hosts hosts;
  hosts.b.listener(1, hosts.b.ipv4(7000));
  const IdHandle client = hosts.a.resolved(2, hosts.b.ipv4(7000));
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const IdHandle server = hosts.b.expect(EventType::connect_request).id;
  hosts.a.destroy(client);
  hosts.run();
  CHECK_FALSE(hosts.b.take());
  CHECK(hosts.b.cm.destroy_id(hosts.now, kProgram, server)->reported == 0);
}

TEST_CASE("What nobody knows as a port space or a type of QP is refused") {
  Hosts hosts;
  RdmaCm& cm = hosts.a.cm;
  CHECK(cm.create_id(kProgram, hosts.a.channel, 1, 0x1234, qp_type::kRc).error() == EINVAL);
  CHECK(cm.create_id(kProgram, hosts.a.channel, 1, port_space::kTcp, 0).error() == EINVAL);
}

}  // namespace
}  // namespace rocemu::cm::test
