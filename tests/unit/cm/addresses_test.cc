// Addresses, ports and routes.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "emulator/wire/cm_message.h"
#include "emulator/wire/cma_header.h"
#include "tests/unit/cm/hosts.h"
#include "tests/unit/cm/seeded.h"

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
  int listen(IdHandle id) {
    const auto refused = a.cm.listen(kProgram, id, 0);
    return refused ? 0 : refused.error();
  }
  uint16_t port_of(IdHandle id) { return (*a.cm.query(kProgram, id))->source->port; }
  IdHandle id() { return a.new_id(1); }
};

TEST_CASE_METHOD(OneHost, "An id is bound to an address of ours, to any, or not at all") {
  const IdHandle own = id();
  CHECK(bind(own, a.ipv4(7000)) == 0);
  CHECK((*a.cm.query(kProgram, own))->local_gid->device == 0);
  CHECK(bind(own, a.ipv4(7001)) == EINVAL);
  CHECK(bind(id(), b.ipv4(7000)) == EADDRNOTAVAIL);
  const IdHandle anywhere = id();
  CHECK(bind(anywhere, any(true, 7001)) == 0);
  CHECK_FALSE((*a.cm.query(kProgram, anywhere))->local_gid);
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
  CHECK(resolved.local_gid->device == 1);
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

// ---- several networks ----

constexpr uint8_t kMapped = 96;

wire::Gid gid4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}

wire::Gid gid6(uint8_t first, uint8_t second, uint8_t last) {
  return {{first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

Address in_24(uint8_t c, uint8_t d) { return {gid4(192, 168, c, d), kMapped + 24}; }

Interface open_device(std::vector<Address> addresses, uint32_t scope_id = 0) {
  return {0x5200, 5, std::move(addresses), true, scope_id};
}

// What resolving says, and from where: an error, or the place of the source.
struct Resolved {
  int error = 0;
  int device = -1;
  int gid_index = -1;
  bool operator==(const Resolved&) const = default;
};

class OneNic {
 public:
  explicit OneNic(std::vector<Interface> devices) : cm(Interfaces(std::move(devices)), seeded(1)) {
    channel_ = *cm.open_channel(kProgram, std::make_unique<SilentBell>());
  }

  Resolved resolve(const wire::Gid& to, uint32_t scope_id = 0,
                   std::optional<wire::Gid> from = std::nullopt) {
    const IdHandle id = *cm.create_id(kProgram, channel_, 1, port_space::kTcp, qp_type::kRc);
    std::optional<SocketAddress> source;
    if (from) source = SocketAddress{!from->is_ipv4_mapped(), *from, 0, 0};
    REQUIRE(cm.resolve_address(kProgram, id, source, {!to.is_ipv4_mapped(), to, 1, scope_id}) == 0);
    const RdmaEvent event = *cm.next_event(kProgram, channel_);
    if (event.type != EventType::address_resolved) return {event.status};
    const LocalGid place = *(*cm.query(kProgram, id))->local_gid;
    return {0, static_cast<int>(place.device), place.gid_index};
  }

  IdHandle listener(const SocketAddress& address) {
    const IdHandle id = *cm.create_id(kProgram, channel_, 1, port_space::kTcp, qp_type::kRc);
    REQUIRE(cm.bind(kProgram, id, address) == 0);
    REQUIRE(cm.listen(kProgram, id, 0));
    return id;
  }
  RdmaEvent take() {
    const auto event = cm.next_event(kProgram, channel_);
    REQUIRE(event);
    return *event;
  }

  RdmaCm cm;

 private:
  class SilentBell final : public EventNotifier {
    void notify() noexcept override {}
  };
  ChannelId channel_ = 0;
};

TEST_CASE("Of two devices the one on the destination's network is the source") {
  OneNic nic({open_device({{gid6(0xfe, 0x80, 1), 64}, in_24(1, 2)}),
              open_device({{gid6(0xfe, 0x80, 2), 64}, in_24(2, 2)})});
  CHECK(nic.resolve(gid4(192, 168, 1, 9)) == Resolved{0, 0, 1});
  CHECK(nic.resolve(gid4(192, 168, 2, 9)) == Resolved{0, 1, 1});
  // Bound to the other one, the way is that one's.
  CHECK(nic.resolve(gid4(192, 168, 2, 9), 0, gid4(192, 168, 1, 2)) == Resolved{0, 0, 1});
}

TEST_CASE("Of two addresses of a device the one on the destination's network is the source") {
  OneNic nic({open_device({in_24(1, 2), {}, in_24(2, 2), {gid4(192, 168, 2, 130), kMapped + 25}})});
  CHECK(nic.resolve(gid4(192, 168, 1, 9)) == Resolved{0, 0, 0});
  CHECK(nic.resolve(gid4(192, 168, 2, 9)) == Resolved{0, 0, 2});
  CHECK(nic.resolve(gid4(192, 168, 2, 200)) == Resolved{0, 0, 3});  // the smaller network
}

TEST_CASE("What is on no network of ours may be behind a gateway of an open device") {
  const Interface closed{0x5200, 5, {in_24(1, 2), {gid6(0xfd, 0x52, 1), 64}}};
  OneNic nic({closed, open_device({{gid6(0xfe, 0x80, 2), 64}, {gid4(10, 0, 0, 2), kMapped + 8}})});
  CHECK(nic.resolve(gid4(10, 200, 3, 4)) == Resolved{0, 1, 1});
  CHECK(nic.resolve(gid4(8, 8, 8, 8)) == Resolved{0, 1, 1});
  CHECK(nic.resolve(gid4(192, 168, 1, 9)) == Resolved{-EHOSTUNREACH});
  CHECK(nic.resolve(gid6(0x20, 0x01, 1)) == Resolved{-ENETUNREACH});  // from a link-local address
  CHECK(OneNic({closed}).resolve(gid4(8, 8, 8, 8)) == Resolved{-ENETUNREACH});
}

TEST_CASE("An own address on an open network is its own source") {
  OneNic nic({open_device({in_24(1, 2)}), open_device({in_24(1, 3), in_24(1, 4)})});
  CHECK(nic.resolve(gid4(192, 168, 1, 4)) == Resolved{0, 1, 1});
  CHECK(nic.resolve(gid4(192, 168, 1, 5)) == Resolved{0, 0, 0});
}

TEST_CASE("A switch's devices reach each other from the first one, and nobody else") {
  const auto device = [](uint8_t n) {
    return Interface{
        0x5200,
        5,
        {{gid6(0xfe, 0x80, n), 64}, {gid4(10, 77, 0, n), kMapped + 16}, {gid6(0xfd, 0x52, n), 64}}};
  };
  OneNic nic({device(1), device(2)});
  CHECK(nic.resolve(gid4(10, 77, 0, 2)) == Resolved{0, 0, 1});
  CHECK(nic.resolve(gid6(0xfd, 0x52, 2)) == Resolved{0, 0, 2});
  CHECK(nic.resolve(gid6(0xfe, 0x80, 2), 5) == Resolved{0, 0, 0});
  CHECK(nic.resolve(gid4(10, 77, 0, 1), 0, gid4(10, 77, 0, 2)) == Resolved{0, 1, 1});
  CHECK(nic.resolve(gid4(10, 77, 9, 9)) == Resolved{-EHOSTUNREACH});
  CHECK(nic.resolve(gid4(10, 78, 0, 1)) == Resolved{-ENETUNREACH});
}

TEST_CASE("The scope of a link-local destination says the device") {
  OneNic nic({open_device({{gid6(0xfe, 0x80, 1), 64}}, 7),
              open_device({in_24(1, 2), {gid6(0xfe, 0x80, 2), 64}}, 8)});
  CHECK(nic.resolve(gid6(0xfe, 0x80, 9), 8) == Resolved{0, 1, 1});
  CHECK(nic.resolve(gid6(0xfe, 0x80, 9), 7) == Resolved{0, 0, 0});
  CHECK(nic.resolve(gid6(0xfe, 0x80, 9)) == Resolved{0, 0, 0});
  CHECK(nic.resolve(gid6(0xfe, 0x80, 9), 99) == Resolved{0, 0, 0});
}

TEST_CASE("One link-local address of two devices is that of either, as the scope or the MAD says") {
  Interfaces interfaces({open_device({{gid6(0xfe, 0x80, 1), 64}}, 7),
                         open_device({in_24(1, 2), {gid6(0xfe, 0x80, 1), 64}}, 8)});
  const auto device_of = [&](uint32_t scope_id) {
    return interfaces.find(SocketAddress{true, gid6(0xfe, 0x80, 1), 0, scope_id})->device;
  };
  CHECK(device_of(7) == 0);
  CHECK(device_of(8) == 1);
  CHECK(device_of(0) == 0);
  CHECK(interfaces.find(gid6(0xfe, 0x80, 1), 1)->gid_index == 1);
  CHECK_FALSE(interfaces.find(gid6(0xfe, 0x80, 2), 1));
}

TEST_CASE("A listener at a link-local address of two devices hears its own") {
  OneNic nic(
      {open_device({{gid6(0xfe, 0x80, 1), 64}}, 7), open_device({{gid6(0xfe, 0x80, 1), 64}}, 8)});
  const IdHandle first = nic.listener({true, gid6(0xfe, 0x80, 1), 7000, 7});
  const IdHandle second = nic.listener({true, gid6(0xfe, 0x80, 1), 7000, 8});
  for (const uint32_t device : {1u, 0u}) {
    wire::CmReq req;
    req.path_mtu = 5;
    req.local_comm_id = 10 + device;
    req.local_qpn.value = 20 + device;
    req.service_id = wire::ip_cm_service_id(port_space::kTcp, 7000);
    const wire::Gid peer = gid6(0xfe, 0x80, 9);
    wire::build_cma_header({true, 1234, peer, gid6(0xfe, 0x80, 1)}, req.private_data);
    nic.cm.on_mad(0, {device, gid6(0xfe, 0x80, 1), peer}, wire::build_cm({1, req}));
    CHECK(nic.take().counted == (device == 0 ? first : second));
  }
}

TEST_CASE("An IPv6 network is none of IPv4's, however short its prefix is") {
  OneNic nic({open_device({{gid6(0x20, 0x01, 1), 0}}), open_device({in_24(1, 2)})});
  CHECK(nic.resolve(gid4(192, 168, 1, 9)) == Resolved{0, 1, 0});
  CHECK(nic.resolve(gid6(0xfd, 0, 9)) == Resolved{0, 0, 0});
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
  CHECK(hosts.b.cm.interfaces().gid(*child.local_gid) == to.ip);
}

}  // namespace
}  // namespace rocemu::cm::test
