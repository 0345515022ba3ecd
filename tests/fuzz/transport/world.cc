#include "tests/fuzz/transport/world.h"

#include <algorithm>
#include <bit>

#include "emulator/transport/requester/scoreboard.h"
#include "emulator/wire/icrc.h"
#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

using transport::QpState;

namespace {

constexpr size_t kMaxWaiting = 64;
constexpr uint32_t kMaxSteps = 600;
constexpr uint32_t kLongestReadPackets = 256;  // the largest region in packets of the least MTU

transport::TransportLimits draw_limits(ByteSource& input) {
  transport::TransportLimits limits;
  limits.window_packets = input.pick<uint32_t>({256, 1, 2, 7, 16, 64});
  limits.ack_interval_packets = input.pick<uint32_t>({64, 1, 3, 16});
  limits.quantum_frames = input.pick<uint32_t>({16, 1, 4});
  limits.recovery =
      input.pick({transport::Recovery::go_back_n, transport::Recovery::selective_repeat});
  limits.multipath = input.pick({false, true});
  return limits;
}

bool is_possible(QpState from, QpState to) {
  using enum QpState;
  if (to == reset || to == error) return true;
  if (from == reset) return to == init;
  if (from == init) return to == init || to == ready_to_receive;
  if (from == ready_to_receive) return to == ready_to_send;
  if (from == send_queue_error) return to == ready_to_send;
  if (from == ready_to_send || from == send_queue_drain)
    return to == ready_to_send || to == send_queue_drain;
  return false;
}

}  // namespace

World::World(ByteSource& input, bool all_services)
    : input_(input),
      all_services_(all_services),
      limits_(draw_limits(input)),
      endpoint_(arena_.memory(), *this, limits_, kMaxQps) {}

void World::run() {
  create();
  create();
  for (uint32_t i = 0; i < kMaxSteps && !input_.empty(); ++i) {
    step();
    check();
  }
  end();
}

void World::step() {
  const uint32_t action = input_.below(24);
  QueuePair* const qp = any();
  switch (action) {
    case 0:
      return create();
    case 1:
      return destroy(input_.below(kMaxQps));
    case 2:
      return connect(input_.below(kMaxQps));
    case 3:
      return change_state(input_.below(kMaxQps));
    case 4:
      return change_memory();
    case 5:
    case 6:
      return pass_time();
    case 7:
      return transmit(input_.pick<unsigned>({1, 2, 16, 64}));
    case 8:
    case 9:
      return exchange();
    case 10:
      return deliver();
    case 11:
      refusals_ = input_.below(8);
      return;
    case 12:
      if (qp != nullptr) fail(*qp);
      return;
    case 13:
      if (qp != nullptr) ring(*qp);
      return;
    case 14:
    case 15:
    case 16:
      if (qp != nullptr) post_send(*qp);
      return;
    case 17:
    case 18:
      if (qp != nullptr) post_receive(*qp);
      return;
    case 19:
    case 20:
      return alter_captured();
    default:
      return craft();
  }
}

QueuePair* World::find(wire::Qpn qpn) {
  for (const auto& qp : qps_)
    if (qp && qp->qpn == qpn) return qp.get();
  return nullptr;
}

QueuePair* World::any() {
  const uint32_t first = input_.below(kMaxQps);
  for (uint32_t i = 0; i < kMaxQps; ++i)
    if (const auto& qp = qps_[(first + i) % kMaxQps]) return qp.get();
  return nullptr;
}

void World::create() {
  const auto free = std::ranges::find_if(qps_, [](const auto& qp) { return !qp; });
  auto qp = std::make_unique<QueuePair>();
  if (all_services_) {
    using enum transport::Service;
    qp->service = input_.pick<transport::Service>({ud, uc, xrc_send, xrc_receive, rc});
    qp->uses_srq = qp->service == xrc_receive || input_.flag();
  }
  const auto qpn = endpoint_.create(qp->service, resources_of(*qp));
  expect(qpn.has_value() == (free != qps_.end()), "the table holds as many QPs as it says");
  if (!qpn) return;
  expect(find(*qpn) == nullptr && *qpn != destroyed_, "a QPN rests before it comes again");
  qp->qpn = *qpn;
  if (qp->service == transport::Service::ud && input_.flag())
    endpoint_.multicast_groups().attach(way_.local_gid, qp->qpn);
  *free = std::move(qp);
}

transport::QpResources World::resources_of(QueuePair& qp) {
  transport::QpResources resources{kPd, &qp.send_queue, &qp.receive_queue, this, this};
  if (qp.uses_srq) resources.receive_queue = &shared_.queue;
  resources.receives_are_shared = qp.uses_srq;
  resources.send_only = qp.service == transport::Service::xrc_send;
  resources.addresses = this;
  if (qp.service == transport::Service::xrc_receive) resources.xrc_domain = this;
  return resources;
}

const transport::Path* World::find(transport::PdHandle pd, uint32_t handle) const noexcept {
  return pd == kPd && handle != 0 ? &way_ : nullptr;
}

bool World::is_local(const wire::Gid& gid) const noexcept { return gid == way_.local_gid; }

bool World::find(wire::Qpn srq, transport::SharedReceiver& receiver) const noexcept {
  receiver = {kPd, &shared_.queue, const_cast<World*>(this)};
  return srq.value == kSrq;
}

void World::destroy(uint32_t index) {
  if (!qps_[index]) {
    endpoint_.destroy(destroyed_);
    return;
  }
  destroyed_ = qps_[index]->qpn;
  endpoint_.destroy(destroyed_);
  qps_[index].reset();
}

void World::connect(uint32_t index) {
  QueuePair* const qp = qps_[index].get();
  if (qp == nullptr) return;
  if (endpoint_.state(qp->qpn) != QpState::reset) modify(*qp, QpState::reset);
  draw_attributes(*qp);
  for (const QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
    modify(*qp, state);
}

void World::change_state(uint32_t index) {
  QueuePair* const qp = qps_[index].get();
  const auto to = static_cast<QpState>(input_.below(7));
  if (qp == nullptr) return;
  const QpState from = endpoint_.state(qp->qpn);
  if (!is_possible(from, to)) return;
  if (from == QpState::reset || from == QpState::init) {
    draw_attributes(*qp);
  } else if (to != QpState::reset && to != QpState::error && input_.flag()) {
    draw_live_attributes(*qp, from == QpState::send_queue_drain && to == from);
  }
  modify(*qp, to);
}

void World::modify(QueuePair& qp, QpState state) {
  qp.max_rd_atomic = std::max<uint32_t>(qp.max_rd_atomic, qp.attributes.max_rd_atomic);
  qp.max_dest_rd_atomic =
      std::max<uint32_t>(qp.max_dest_rd_atomic, qp.attributes.max_dest_rd_atomic);
  // In ERROR already, it does not flush again: what was posted since is flushed when it rings.
  const QpState from = endpoint_.state(qp.qpn);
  if (state == QpState::error && from != QpState::error) qp.unrung = false;
  if (from == QpState::send_queue_error && state == QpState::ready_to_send) qp.on_resumed();
  endpoint_.modify(qp.qpn, state, qp.attributes);
  qp.state = state;
  if (state == QpState::reset) qp.on_reset();
}

void World::fail(QueuePair& qp) {
  endpoint_.fail(qp.qpn);
  endpoint_.flush_posted(qp.qpn);
  qp.unrung = false;
}

void World::ring(QueuePair& qp) {
  endpoint_.on_doorbell(qp.qpn);
  qp.unrung = false;
}

void World::change_memory() {
  const uint32_t index = input_.below(2);
  switch (input_.below(3)) {
    case 0:
      return arena_.deregister(index);
    case 1:
      return arena_.break_moves(index);
    default:
      return arena_.register_anew(index);
  }
}

void World::pass_time() {
  const auto step_ns = input_.pick<TimeNs>({0, 100, 10'000, 1'000'000, 1'000'000'000});
  if (step_ns != 0) {
    now_ns_ += step_ns;
  } else if (endpoint_.next_deadline() != kNever) {
    now_ns_ = std::max(now_ns_, endpoint_.next_deadline());
  }
  endpoint_.on_timeout(now_ns_);
  expect(endpoint_.next_deadline() > now_ns_, "what was due is over");
}

void World::transmit(unsigned max_frames) {
  sent_in_call_ = 0;
  const unsigned sent = endpoint_.transmit(now_ns_, *this, max_frames);
  expect(sent == sent_in_call_ && sent <= max_frames, "as many frames leave as transmit says");
  expect(lent_.empty(), "each buffer is sent or given back");
}

// What is sent arrives, for a while.
void World::exchange() {
  const uint32_t rounds = input_.pick<uint32_t>({1, 2, 8});
  for (uint32_t i = 0; i < rounds; ++i) {
    const size_t before = captured_.size();
    captured_.clear();
    transmit(32);
    if (captured_.empty() && before == 0) return;
    waiting_.insert(waiting_.end(), captured_.begin(), captured_.end());
    deliver();
    check();
  }
}

void World::deliver() {
  const std::vector<Frame> burst = std::move(waiting_);
  waiting_.clear();
  std::vector<std::span<const std::byte>> frames(burst.begin(), burst.end());
  endpoint_.on_frames(now_ns_, frames);
}

void World::check() {
  if (waiting_.size() >= kMaxWaiting) deliver();
  uint32_t count = 0;
  for (const auto& qp : qps_) {
    if (!qp) continue;
    ++count;
    check_load(*qp);
    // Of many QPs whose doorbells ring, some are flushed in the turns that follow.
    const bool flushed = !qp->unrung && !endpoint_.wants_transmit();
    if (flushed && endpoint_.state(qp->qpn) == QpState::error) qp->check_flushed();
  }
  expect(endpoint_.qp_count() == count, "QPs are counted");
  arena_.check();
}

void World::check_load(const QueuePair& qp) {
  const transport::QpLoad load = endpoint_.load(qp.qpn);
  const bool selective = limits_.recovery == transport::Recovery::selective_repeat;
  const uint32_t window = selective ? std::clamp(std::bit_ceil(4 * limits_.window_packets), 64u,
                                                 transport::Scoreboard::kMaxPsns)
                                    : limits_.window_packets;
  const bool has_window =
      qp.service != transport::Service::ud && qp.service != transport::Service::uc;
  expect(load.requests <= std::min<size_t>(kSendDepth, has_window ? window + 1 : kSendDepth),
         "no more requests are taken than the window bounds");
  expect(load.unacknowledged_psns < window + kLongestReadPackets,
         "the window bounds what is in flight");
  expect(load.rd_atomics <= qp.max_rd_atomic, "READs and atomics in flight are bounded");
  expect(load.queued_responses <= 2u * qp.max_dest_rd_atomic + (selective ? 19 : 3),
         "waiting answers are bounded");
  expect(load.kept_atomic_results <= std::max<uint32_t>(qp.max_dest_rd_atomic, 1),
         "kept results of atomics are bounded");
}

void World::push(const transport::Completion& completion) noexcept {
  QueuePair* const qp = find(completion.qpn);
  expect(qp != nullptr, "only QPs that exist complete");
  if (const transport::InlineCqeData& data = completion.inline_data; data.length_bytes > 0) {
    expect(completion.status == transport::WcStatus::success &&
               completion.opcode == transport::WcOpcode::receive &&
               data.length_bytes == completion.byte_length,
           "a receive alone has inline data, and all of its message");
    std::copy_n(data.bytes.begin(), data.length_bytes,
                arena_.memory().at(data.address, data.length_bytes).begin());
  }
  if (qp->uses_srq && completion.opcode >= transport::WcOpcode::receive) {
    shared_.on_completion(completion);
  } else {
    qp->on_completion(completion);
  }
}

void World::on_qp_event(wire::Qpn qpn, transport::QpEvent) noexcept {
  expect(find(qpn) != nullptr, "only QPs that exist have events");
}

void World::on_qp_error(wire::Qpn qpn) noexcept {
  QueuePair* const qp = find(qpn);
  expect(qp != nullptr, "only QPs that exist fail");
  qp->unrung = false;
}

bool World::allocate(transport::FrameBuffer& buffer) noexcept {
  if (refusals_ > 0) {
    --refusals_;
    return false;
  }
  buffer.data = new std::byte[transport::kMaxFrameBytes];
  buffer.handle = nullptr;
  lent_.insert(buffer.data);
  return true;
}

void World::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  expect(length_bytes <= transport::kMaxFrameBytes, "a frame fits its buffer");
  ++sent_in_call_;
  Frame frame(buffer.data, buffer.data + length_bytes);
  discard(buffer);
  wire::Packet packet;
  expect(wire::parse_frame(frame, packet) == wire::ParseError::none, "what is sent is well formed");
  expect(wire::icrc_matches(packet.l3), "what is sent has its ICRC");
  Arena::check_no_secret(packet.payload);
  note_sent(packet);
  if (wire_carries_) capture(std::move(frame));
}

void World::discard(const transport::FrameBuffer& buffer) noexcept {
  expect(lent_.erase(buffer.data) == 1, "a buffer is given back once");
  delete[] buffer.data;
}

}  // namespace rocemu::fuzz
