// Programs on the devices of a NIC that inspects, in virtual time.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "emulator/inspection/inspection.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/hca_node.h"
#include "emulator/sim/sim_queues.h"

namespace rocemu::inspection {

constexpr uint64_t kBase = 0x10000;  // where programs' memory begins
constexpr uint32_t kBytes = 65536;

// The NIC's devices.
struct World {
  explicit World(uint32_t devices = 2);
  // All there is to do; a minute at most.
  void run();
  void delay(TimeNs one_way_ns);

  Inspection inspection;
  sim::Fabric fabric{7};
  std::vector<sim::HcaNode*> nodes;
};

struct Queues final : device::WorkQueues {
  sim::SimSendQueue sends{64};
  sim::SimReceiveQueue receives;
  transport::SendQueue& send() noexcept override { return sends; }
  transport::ReceiveQueue& receive() noexcept override { return receives; }
  void show_state(transport::QpState) noexcept override {}
  void reset() noexcept override {}
};

struct End {
  device::Handle qp = 0;
  wire::Qpn qpn{};
  Queues* queues = nullptr;
};

// A program with a context, a region of all of its memory, and QPs.
struct Program {
  Program(World& world, uint32_t device);

  End make_qp();
  // To READY TO SEND, after `change` has had its way with the attributes.
  template <class Change>
  void connect(const End& end, const Program& peer, const End& peer_end, Change change) {
    device::QpAttr attr = usual_attributes(end, peer, peer_end);
    change(attr);
    to_ready_to_receive(end, attr);
    to_ready_to_send(end, attr);
  }
  void connect(const End& end, const Program& peer, const End& peer_end) {
    connect(end, peer, peer_end, [](device::QpAttr&) {});
  }
  static device::QpAttr usual_attributes(const End& end, const Program& peer, const End& peer_end);
  void to_ready_to_receive(const End& end, const device::QpAttr& attr);
  void to_ready_to_send(const End& end, const device::QpAttr& attr);
  void reset(const End& end);
  void post(const End& end, sim::SendRequest request);
  void post_receive(const End& end, uint64_t wr_id);
  transport::Sge sge(uint32_t length_bytes, uint64_t offset = 0) const {
    return {kBase + offset, length_bytes, keys.lkey};
  }
  QpReport report(const End& end) const;
  std::vector<Finding> findings();

  World& world;
  uint32_t device;
  sim::HcaNode& node;
  device::Hca& hca;
  std::vector<std::byte> memory;
  std::vector<transport::Completion> completions;
  device::ContextId context = 0;
  device::Handle pd = 0;
  device::Handle cq = 0;
  device::MrKeys keys;

 private:
  void modify(const End& end, uint32_t state, uint32_t mask, const device::QpAttr& attr);
};

// Two programs with a connected QP each.
struct Pair {
  explicit Pair(World& world) : a(world, 0), b(world, 1), at_a(a.make_qp()), at_b(b.make_qp()) {}
  void connect() {
    a.connect(at_a, b, at_b);
    b.connect(at_b, a, at_a);
  }
  Program a;
  Program b;
  End at_a;
  End at_b;
};

// A WRITE or READ of the peer's memory, `offset` bytes from its beginning.
sim::SendRequest reach(const Program& from, const Program& to, transport::WorkOpcode opcode,
                       uint64_t wr_id, uint32_t length_bytes, uint64_t offset = 0);
sim::SendRequest message(const Program& from, uint64_t wr_id, uint32_t length_bytes = 64);

}  // namespace rocemu::inspection
