// Addresses, ports and routes.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "tests/unit/cm/hosts.h"

namespace rocemu::cm::test {
namespace {

SocketAddress any(bool ipv6, uint16_t port) {
  SocketAddress address{ipv6, {}, port, 0};
  if (!ipv6) address.ip.bytes[10] = address.ip.bytes[11] = 0xff;
  return address;
}

SocketAddress ipv4(uint8_t c, uint8_t d, uint16_t port) {
  SocketAddress address = any(false, port);
  address.ip.bytes[12] = 10;
  address.ip.bytes[13] = c;
  address.ip.bytes[15] = d;
  return address;
}

int set(Host& host, IdHandle id, uint32_t name, int value) {
  std::array<std::byte, sizeof(value)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(value));
  return host.cm.set_option(kProgram, id, 0, name, bytes);
}

constexpr uint32_t kReuse = 1;
constexpr uint32_t kOnlyIpv6 = 2;

// The NIC of these tests has all addresses itself, as one rocemud has.
struct OneHost : Hosts {
  int bind(IdHandle id, const SocketAddress& address) { return a.cm.bind(kProgram, id, address); }
  int listen(IdHandle id) { return a.cm.listen(kProgram, id, 0); }
  uint16_t port_of(IdHandle id) { return (*a.cm.query(kProgram, id))->source->port; }
  IdHandle id() { return a.new_id(1); }
};

TEST_CASE_METHOD(OneHost, "An id is bound to an address of ours, to any, or not at all") {
  const IdHandle own = id();
  CHECK(bind(own, a.ipv4(7000)) == 0);
  CHECK((*a.cm.query(kProgram, own))->place->device == 0);
  CHECK(bind(own, a.ipv4(7001)) == EINVAL);
  CHECK(bind(id(), b.ipv4(7000)) == EADDRNOTAVAIL);
  const IdHandle anywhere = id();
  CHECK(bind(anywhere, any(true, 7001)) == 0);
  CHECK_FALSE((*a.cm.query(kProgram, anywhere))->place);
}

TEST_CASE_METHOD(OneHost, "Port 0 is one that is free, and a port is free again with its id") {
  const IdHandle first = id();
  const IdHandle second = id();
  CHECK(bind(first, any(false, 0)) == 0);
  CHECK(bind(second, any(false, 0)) == 0);
  CHECK(port_of(first) >= 32768);
  CHECK(port_of(first) != port_of(second));
  const uint16_t port = port_of(first);
  CHECK(bind(id(), any(false, port)) == EADDRINUSE);
  a.destroy(first);
  CHECK(bind(id(), any(false, port)) == 0);
}

TEST_CASE_METHOD(OneHost, "A port is in use where addresses overlap") {
  CHECK(bind(id(), a.ipv4(7000)) == 0);
  CHECK(bind(id(), a.ipv4(7000)) == EADDRINUSE);
  CHECK(bind(id(), any(false, 7000)) == EADDRINUSE);
  CHECK(bind(id(), any(true, 7000)) == EADDRINUSE);  // takes IPv4, too
  CHECK(bind(id(), a.ipv6(7000)) == 0);
  const IdHandle only_ipv6 = id();
  CHECK(set(a, only_ipv6, kOnlyIpv6, 1) == 0);
  CHECK(bind(only_ipv6, any(true, 7001)) == 0);
  CHECK(bind(id(), any(false, 7001)) == 0);
  // Another port space has its own.
  const IdHandle datagram = a.new_id(1, port_space::kUdp, qp_type::kUd);
  CHECK(bind(datagram, a.ipv4(7000)) == 0);
}

TEST_CASE_METHOD(OneHost, "A port may be shared by those who say so, until one listens") {
  const IdHandle first = id();
  const IdHandle second = id();
  CHECK(set(a, first, kReuse, 1) == 0);
  CHECK(set(a, second, kReuse, 1) == 0);
  CHECK(bind(first, a.ipv4(7000)) == 0);
  CHECK(set(a, first, kReuse, 0) == EINVAL);
  CHECK(bind(id(), a.ipv4(7000)) == EADDRINUSE);
  CHECK(bind(second, a.ipv4(7000)) == 0);
  CHECK(listen(first) == EADDRINUSE);
  a.destroy(second);
  CHECK(listen(first) == 0);
  CHECK(listen(first) == EINVAL);
}

TEST_CASE_METHOD(OneHost,
                 "A bound id may still say that its port can be shared, until it listens") {
  const IdHandle first = id();
  const IdHandle second = id();
  CHECK(bind(first, a.ipv4(7000)) == 0);
  CHECK(set(a, second, kReuse, 1) == 0);
  CHECK(bind(second, a.ipv4(7000)) == EADDRINUSE);
  CHECK(set(a, first, kReuse, 1) == 0);
  CHECK(bind(second, a.ipv4(7000)) == 0);
  CHECK(set(a, second, kReuse, 0) == EINVAL);  // only before it is bound
  a.destroy(first);
  CHECK(a.cm.resolve_address(kProgram, second, std::nullopt, a.ipv4(1)) == 0);
  CHECK(set(a, second, kReuse, 1) == 0);
  const IdHandle listener = id();
  CHECK(listen(listener) == 0);
  CHECK(set(a, listener, kReuse, 1) == EINVAL);
}

TEST_CASE_METHOD(OneHost,
                 "A bound id may still say whether it takes IPv4, which counts when one listens") {
  const IdHandle ipv6 = id();
  CHECK(bind(ipv6, any(true, 7000)) == 0);
  const IdHandle ipv4 = id();
  CHECK(bind(ipv4, any(false, 7000)) == EADDRINUSE);
  CHECK(set(a, ipv6, kOnlyIpv6, 1) == 0);
  CHECK(bind(ipv4, any(false, 7000)) == 0);
  CHECK(set(a, ipv6, kOnlyIpv6, 0) == 0);
  CHECK(listen(ipv6) == EADDRINUSE);
  CHECK(set(a, ipv6, kOnlyIpv6, 1) == 0);
  CHECK(listen(ipv6) == 0);
  CHECK(set(a, ipv6, kOnlyIpv6, 0) == EINVAL);
  CHECK(listen(ipv4) == 0);
  const IdHandle client = id();
  CHECK(a.cm.resolve_address(kProgram, client, std::nullopt, a.ipv4(1)) == 0);
  CHECK(set(a, client, kOnlyIpv6, 1) == EINVAL);
}

TEST_CASE_METHOD(OneHost, "An id that listens unbound gets a port at any address") {
  const IdHandle listener = id();
  CHECK(listen(listener) == 0);
  CHECK(port_of(listener) != 0);
  CHECK((*a.cm.query(kProgram, listener))->source->is_any());
}

TEST_CASE_METHOD(OneHost, "Resolving finds a source, and says why there is none") {
  SocketAddress loopback = any(false, 1);
  loopback.ip.bytes[12] = 127;
  loopback.ip.bytes[15] = 1;
  const auto resolve = [&](const SocketAddress& to) {
    const IdHandle client = id();
    REQUIRE(a.cm.resolve_address(kProgram, client, std::nullopt, to) == 0);
    const RdmaEvent event = *a.take();
    CHECK(event.counted == client);
    return event.type == EventType::address_resolved ? 0 : event.status;
  };
  CHECK(resolve(a.ipv4(1)) == 0);
  CHECK(resolve(a.ipv6(1)) == 0);
  CHECK(resolve(any(false, 1)) == 0);
  CHECK(resolve(loopback) == 0);
  CHECK(resolve(ipv4(77, 99, 1)) == -EHOSTUNREACH);
  CHECK(resolve(ipv4(78, 1, 1)) == -ENETUNREACH);
}

TEST_CASE_METHOD(OneHost, "The given source is taken, and only from our own") {
  const SocketAddress second = ipv4(77, 101, 0);
  const IdHandle client = id();
  CHECK(a.cm.resolve_address(kProgram, client, second, a.ipv4(1)) == 0);
  a.expect(EventType::address_resolved);
  const RdmaId& resolved = **a.cm.query(kProgram, client);
  CHECK(resolved.place->device == 1);
  CHECK(resolved.source->ip == second.ip);
  CHECK(resolved.source->port != 0);
  CHECK(a.cm.resolve_address(kProgram, client, std::nullopt, a.ipv4(1)) == EINVAL);
  CHECK(a.cm.resolve_address(kProgram, id(), b.ipv4(), a.ipv4(1)) == EADDRNOTAVAIL);
  CHECK(a.cm.resolve_address(kProgram, id(), a.ipv6(), a.ipv4(1)) == EINVAL);
}

TEST_CASE_METHOD(OneHost, "Steps out of their order are refused") {
  const IdHandle client = id();
  CHECK(a.cm.resolve_route(kProgram, client) == EINVAL);
  CHECK(a.connect(client) == EINVAL);
  CHECK(a.accept(client, 1) == EINVAL);
  CHECK(a.disconnect(client) == EINVAL);
  CHECK(a.cm.reject(0, kProgram, client, 0, {}) == EINVAL);
  CHECK(a.cm.qp_setup(kProgram, client, 1).error() == EINVAL);
  CHECK(a.cm.qp_setup(kProgram, a.resolved(1, a.ipv4(1)), 2).error() == EINVAL);
  ConnectionParameters too_long;
  too_long.data.length = 57;
  const IdHandle ready = a.resolved(1, a.ipv4(1));
  CHECK(a.connect(ready, too_long) == EINVAL);
  CHECK(a.connect(ready) == 0);
  CHECK(a.connect(ready) == EINVAL);
}

TEST_CASE("A listener at any address hears every device, and one at an address is asked first") {
  Hosts hosts;
  const bool ipv6 = GENERATE(false, true);
  const IdHandle anywhere = hosts.b.listener(1, any(true, 7000));
  const IdHandle other = hosts.b.listener(2, any(false, 7001));
  (void)other;
  const SocketAddress to = ipv6 ? hosts.b.ipv6(7000) : hosts.b.ipv4(7000);
  const IdHandle client = hosts.a.resolved(3, to);
  REQUIRE(hosts.a.connect(client) == 0);
  hosts.run();
  const RdmaEvent request = hosts.b.expect(EventType::connect_request);
  CHECK(request.counted == anywhere);
  const RdmaId& child = **hosts.b.cm.query(kProgram, request.id);
  CHECK(child.source->ipv6 == ipv6);
  CHECK(child.source->ip == to.ip);
  CHECK(hosts.b.cm.interfaces().gid(*child.place) == to.ip);
}

}  // namespace
}  // namespace rocemu::cm::test
