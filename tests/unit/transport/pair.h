// Two hosts with one connected QP each, on a network that loses what it is told to lose: the stage
// for stories about the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "emulator/wire/packet.h"
#include "tests/unit/time_units.h"

namespace rocemu::transport_test {

using namespace rocemu::transport;
using sim::ReceiveRequest;
using sim::SendRequest;
using wire::Operation;
using wire::Psn;

inline constexpr uint32_t kAllAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

// The first that `b` expects, where options do not say otherwise.
inline constexpr uint32_t kPsn = 100;

class Host;

struct PairOptions {
  sim::NodeOptions node;
  std::optional<sim::NodeOptions> b_node = std::nullopt;  // of `b`, when it is another
  Service a_service = Service::rc;
  Service b_service = Service::rc;
  bool a_shares_receives = false;
  uint32_t mtu_bytes = 1024;
  uint32_t a_psn = kPsn;
  uint32_t b_psn = 5000;
  uint8_t timeout = 8;  // 1.05 ms
  uint8_t retry_count = 3;
  uint8_t rnr_retry = 3;
  uint8_t min_rnr_timer = 5;  // 60 us
  uint8_t max_rd_atomic = 4;
  uint32_t access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  // Changes what the QP of `b` is made of.
  std::function<void(Host& b, QpResources&)> equip_b;
};

struct Buffer {
  uint64_t address = 0;
  uint32_t length_bytes = 0;
  uint32_t key = 0;
  Sge sge() const { return {address, length_bytes, wire::LKey{key}}; }
  Sge sge(uint32_t offset, uint32_t length) const {
    return {address + offset, length, wire::LKey{key}};
  }
};

inline wire::ExtendedHeaders reth(const Buffer& far, uint32_t length_bytes) {
  wire::ExtendedHeaders ext;
  ext.reth = {far.address, wire::RKey{far.key}, length_bytes};
  return ext;
}

inline std::vector<std::byte> filled(size_t bytes, uint8_t with = 0x77) {
  return std::vector<std::byte>(bytes, std::byte{with});
}

// The address handle that is the way to the peer.
inline constexpr uint32_t kPeer = 1;
inline constexpr wire::Gid kGroupGid{{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};

class HostAddresses : public Addresses {
 public:
  const Path* find(PdHandle pd, uint32_t handle) const noexcept override {
    if (pd != 1) return nullptr;
    return handle == kPeer ? &peer : nullptr;
  }
  bool is_local(const wire::Gid& gid) const noexcept override { return gid == peer.local_gid; }
  Path peer;
};

// The SRQ with the number 7.
class HostDomain : public XrcDomain {
 public:
  bool find(wire::Qpn srq, SharedReceiver& found) const noexcept override {
    found = receiver;
    return srq.value == 7 && receiver.queue != nullptr;
  }
  SharedReceiver receiver;
};

// One side: a node, its QP and queues.
class Host {
 public:
  Host(sim::EndpointNode& node, size_t send_depth) : node_(node), send_queue(send_depth) {}

  // Registered memory, filled with bytes that depend on `seed`; 0: zero.
  Buffer buffer(uint32_t length_bytes, uint8_t seed = 0, uint32_t access = kAllAccess);
  std::vector<std::byte> bytes(const Buffer& buffer);
  uint64_t word(const Buffer& buffer, uint32_t offset = 0);
  void set_word(const Buffer& buffer, uint64_t value, uint32_t offset = 0);

  void post(SendRequest request);
  void receive(uint64_t wr_id, const std::vector<Sge>& sges);
  void modify(QpState state);

  QpState state() { return node_.endpoint().state(qpn); }
  const Counters& counters() { return node_.endpoint().counters(); }
  Endpoint& endpoint() { return node_.endpoint(); }
  sim::EndpointNode& node() { return node_; }
  // In the order in which they came.
  std::vector<QpEvent> events() const;
  bool had_event(QpEvent event) const;

 private:
  sim::EndpointNode& node_;

 public:
  wire::Qpn qpn{};
  sim::SimSendQueue send_queue;
  sim::SimReceiveQueue receive_queue;
  sim::SimCompletionQueue send_cq;
  sim::SimCompletionQueue receive_cq;
  QpAttributes attributes;
  HostAddresses addresses;
  HostDomain domain;
};

// A frame that was sent, as the stories look at it.
struct Sent {
  uint64_t now_ns;
  bool from_a;
  Operation operation;
  uint32_t psn;
  uint32_t payload_bytes;
  bool ack_request;
  bool solicited;
  wire::ExtendedHeaders ext;
  bool mig_req;
  wire::Gid destination;
  uint8_t reserved7;
  uint16_t source_port;
};

class Pair {
 public:
  explicit Pair(const PairOptions& options = {});

  sim::Fabric fabric{1};
  Host a;
  Host b;
  std::vector<Sent> sent;
  // Frames for which this is true do not arrive.
  std::function<bool(const Sent&)> lose;

  // Runs until nothing is left to happen; fails the test when that takes more than ten seconds.
  void drive();
  void run_for(uint64_t ns) { fabric.run(fabric.now_ns() + ns); }

  // Hands `to` a frame that claims to come from its peer. Destination QP, P_Key and addresses are
  // filled in; the frame is well formed as far as Ethernet, IP, UDP and ICRC go.
  void inject(Host& to, Operation operation, uint32_t psn, const wire::ExtendedHeaders& ext = {},
              std::span<const std::byte> payload = {}, bool ack_request = true);
  std::vector<std::byte> frame_for(Host& to, wire::Bth bth, const wire::ExtendedHeaders& ext,
                                   std::span<const std::byte> payload);

  // Returns what one side sent of one kind.
  std::vector<Sent> sent_by(const Host& host, Operation operation) const;
  size_t count(const Host& host, Operation operation) const {
    return sent_by(host, operation).size();
  }
  Host& peer_of(const Host& host) { return &host == &a ? b : a; }
  wire::Transport transport = wire::Transport::rc;

 private:
  void create(Host& host, Service service, bool shares_receives,
              const std::function<void(Host&, QpResources&)>& equip = {});
  void connect(Host& host, const PairOptions& options, uint32_t psn, uint32_t peer_psn);
};

// Requests in one word.
SendRequest send(const Buffer& from, uint64_t wr_id = 1);
SendRequest write(const Buffer& from, const Buffer& to, uint64_t wr_id = 1);
SendRequest read(const Buffer& into, const Buffer& from, uint64_t wr_id = 1);
SendRequest compare_swap(const Buffer& into, const Buffer& cell, uint64_t compare, uint64_t swap,
                         uint64_t wr_id = 1);
SendRequest fetch_add(const Buffer& into, const Buffer& cell, uint64_t add, uint64_t wr_id = 1);
SendRequest atomic_write(const Buffer& from, const Buffer& cell, uint64_t wr_id = 1);
SendRequest datagram(const Buffer& from, const Host& to, uint64_t wr_id = 1);
SendRequest with_immediate(SendRequest request, uint32_t immediate);
SendRequest fenced(SendRequest request);
SendRequest unsignaled(SendRequest request);

std::vector<WcStatus> statuses(const sim::SimCompletionQueue& cq);
std::vector<uint64_t> wr_ids(const sim::SimCompletionQueue& cq);

// Drives. The request of `a` must fail with `status`, since `b` sent `syndrome`; both QPs are in
// ERROR then, and `b` has had the event, or none when a receive of its own says what happened.
void expect_nak(Pair& pair, WcStatus status, uint8_t syndrome, std::optional<QpEvent> event);

}  // namespace rocemu::transport_test
