// The transport target's world: one endpoint whose QPs are each other's peers over a wire that the
// input controls. The input is a program: its bytes make, connect, fill and destroy QPs, take
// frames off the wire and put them back later, again or altered, put new ones there, let time pass
// and memory fail. After each step the invariants of endpoint.h are checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "base/time.h"
#include "emulator/transport/endpoint.h"
#include "emulator/wire/packet.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/transport/arena.h"
#include "tests/fuzz/transport/queue_pair.h"

namespace rocemu::fuzz {

using Frame = std::vector<std::byte>;

class World final : public transport::EventSink,
                    public transport::FrameSink,
                    public transport::CompletionQueue,
                    public transport::Addresses,
                    public transport::XrcDomain {
 public:
  // `all_services`: QPs are of any service and may share receives; else all are RC.
  World(ByteSource& input, bool all_services);

  // Runs the whole program, then brings all to an end.
  void run();

  void push(const transport::Completion& completion) noexcept override;
  bool reaches(const transport::MemoryRange& range) const noexcept override {
    return all_services_ && sim::SimMemory::moves(range);
  }
  void on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept override;
  void on_qp_error(wire::Qpn qpn) noexcept override;
  const transport::Path* find(transport::PdHandle pd, uint32_t handle) const noexcept override;
  bool is_local(const wire::Gid& gid) const noexcept override;
  bool find(wire::Qpn srq, transport::SharedReceiver& receiver) const noexcept override;
  bool allocate(transport::FrameBuffer& buffer) noexcept override;
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override;
  void discard(const transport::FrameBuffer& buffer) noexcept override;

 private:
  static constexpr uint32_t kMaxQps = 4;
  static constexpr uint32_t kSrq = 1;
  static constexpr uint32_t kQkey = 0x51;

  // world.cc
  void step();
  void create();
  transport::QpResources resources_of(QueuePair& qp);
  void destroy(uint32_t index);
  void connect(uint32_t index);
  void change_state(uint32_t index);
  void modify(QueuePair& qp, transport::QpState state);
  void fail(QueuePair& qp);
  void ring(QueuePair& qp);
  void change_memory();
  void pass_time();
  void transmit(unsigned max_frames);
  void exchange();
  void deliver();
  void check();
  void check_load(const QueuePair& qp);
  QueuePair* find(wire::Qpn qpn);
  QueuePair* any();

  // work.cc
  void draw_attributes(QueuePair& qp);
  void draw_live_attributes(QueuePair& qp, bool all);
  void post_send(QueuePair& qp);
  void post_receive(QueuePair& qp);
  transport::Sge draw_sge(uint32_t length_bytes);
  uint32_t draw_length(const QueuePair& qp);

  // frames.cc
  void craft();
  void alter_captured();
  void capture(Frame frame);
  wire::Operation draw_operation();
  wire::ExtendedHeaders draw_headers(const QueuePair& qp);
  void note_sent(const wire::Packet& packet);

  // ending.cc
  void end();
  void drain();
  void let_timers_run_out();

  ByteSource& input_;
  bool all_services_;
  mutable SharedReceives shared_;  // the SRQ of all, with the number kSrq
  transport::Path way_;            // what every address handle stands for
  Arena arena_;
  transport::TransportLimits limits_;
  transport::Endpoint endpoint_;
  TimeNs now_ns_ = 1000;
  std::array<std::unique_ptr<QueuePair>, kMaxQps> qps_;
  wire::Qpn destroyed_{0x123456};  // the last one
  bool wire_carries_ = true;       // else what is sent is lost
  uint32_t refusals_ = 0;          // of allocate() still to come
  std::set<std::byte*> lent_;      // buffers under construction
  uint32_t sent_in_call_ = 0;
  std::deque<Frame> captured_;  // off the wire, newest last
  std::vector<Frame> waiting_;  // to be delivered in one burst
};

}  // namespace rocemu::fuzz
