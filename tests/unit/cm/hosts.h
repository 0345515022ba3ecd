// Two hosts with a connection manager each, and the network between them, in virtual time. Tests of
// the connection manager are stories about them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "emulator/wire/cm_message.h"
#include "tests/unit/time_units.h"

namespace rocemu::cm::test {

struct Faults {
  double loss = 0;
  double duplication = 0;
  double reordering = 0;  // a MAD that comes up to 100 ms later than it should
};

inline constexpr OwnerId kProgram = 1;

class Hosts;

// One host, with one program and one channel to begin with.
class Host {
 public:
  Host(Hosts& hosts, uint8_t number, const RdmaLimits& limits);

  RdmaCm cm;
  ChannelId channel = 0;
  unsigned rings = 0;

  // 10.77.0.N, and fd52::N.
  SocketAddress ipv4(uint16_t port = 0) const;
  SocketAddress ipv6(uint16_t port = 0) const;

  IdHandle new_id(uint64_t uid, uint16_t port_space = port_space::kTcp,
                  uint8_t type = qp_type::kRc);
  // An id that listens; `address` with its port.
  IdHandle listener(uint64_t uid, const SocketAddress& address, uint32_t backlog = 0,
                    uint16_t port_space = port_space::kTcp, uint8_t type = qp_type::kRc);
  // An id that has resolved address and route; the two events have been taken.
  IdHandle resolved(uint64_t uid, const SocketAddress& to, uint16_t port_space = port_space::kTcp,
                    uint8_t type = qp_type::kRc);
  int connect(IdHandle id, const ConnectionParameters& parameters = {});
  int accept(IdHandle id, uint64_t uid, const ConnectionParameters& parameters = {});
  int confirm(IdHandle id);  // of a connect_response
  int disconnect(IdHandle id);
  void destroy(IdHandle id);
  const Connection* connection(IdHandle id) const;

  std::optional<RdmaEvent> take();
  // The next event, which has to be of this type.
  RdmaEvent expect(EventType type);

 private:
  Hosts& hosts_;
  uint8_t number_;
};

class Hosts {
 public:
  explicit Hosts(uint64_t seed = 1, const Faults& faults = {}, const RdmaLimits& limits = {});

  Host a;
  Host b;
  TimeNs now = 0;
  Faults faults;
  uint64_t mads = 0;                 // sent so far
  std::vector<wire::MadBytes> sent;  // all of them

  // Lets `duration` pass: messages arrive, timers run out.
  void run(TimeNs duration = 10 * kMs);
  // Until nothing is under way and nobody waits for anything; false when that takes over `limit`.
  bool settle(TimeNs limit);
  // The message that was sent so many messages after the first, which has to be a Body.
  template <class Body>
  Body sent_as(size_t index) const {
    wire::CmMessage message;
    if (wire::parse_cm(sent.at(index), message) != wire::CmParseError::none)
      throw std::runtime_error("no message of the connection manager");
    return std::get<Body>(message.body);
  }
  // Nothing is left of any id, channels aside.
  bool clean() const;

 private:
  void collect(Host& from);
  void step(TimeNs until);
  TimeNs next_time() const;

  Random random_;
  std::multimap<TimeNs, OutgoingMad> in_flight_;
};

ConnectionParameters with_data(const std::string& text, uint32_t qpn = 0x100);
std::string text_of(const PrivateData& data);
const ConnectionParameters& stream(const RdmaEvent& event);
const DatagramParameters& datagram(const RdmaEvent& event);

// A connection from `a` to `b`, set up in full without faults.
struct Pair {
  IdHandle client = 0;
  IdHandle server = 0;
  IdHandle listener = 0;
};
Pair connected(Hosts& hosts);

}  // namespace rocemu::cm::test
