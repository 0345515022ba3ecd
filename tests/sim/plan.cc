#include "tests/sim/plan.h"

#include <algorithm>

namespace rocemu::sim_scenarios {

namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1'000'000;

template <class T>
T pick(Random& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}

bool percent(Random& random, uint32_t n) { return random.chance(n * 10'000); }

uint32_t draw_length(Random& random, bool long_messages) {
  if (long_messages) return static_cast<uint32_t>(random.between(1, kLongestMessageBytes));
  const uint64_t kind = random.below(100);
  if (kind < 8) return 0;
  if (kind < 65) return static_cast<uint32_t>(random.between(1, 300));
  if (kind < 88) return static_cast<uint32_t>(random.between(1, 5000));
  if (kind < 94) return static_cast<uint32_t>(random.between(1, 20)) * 256;
  if (kind < 99) return static_cast<uint32_t>(random.between(1, 16384));
  return static_cast<uint32_t>(random.between(1, 65536));
}

// Cuts `length_bytes` into up to `most` pieces, some of them empty.
std::vector<uint32_t> cut(Random& random, uint32_t length_bytes, uint32_t most) {
  const uint64_t count = random.between(length_bytes == 0 ? 0 : 1, most);
  std::vector<uint32_t> pieces;
  for (uint64_t i = 0; i + 1 < count; ++i) {
    const auto piece =
        percent(random, 15) ? 0 : static_cast<uint32_t>(random.between(0, length_bytes));
    pieces.push_back(piece);
    length_bytes -= piece;
  }
  if (count > 0) pieces.push_back(length_bytes);
  return pieces;
}

Mishap draw_mishap(Random& random, bool may_read) {
  const Mishap mishap =
      static_cast<Mishap>(random.between(1, static_cast<uint64_t>(Mishap::unreachable_receive)));
  return mishap == Mishap::misaligned_atomic && !may_read ? Mishap::bad_rkey : mishap;
}

WorkOpcode draw_opcode(Random& random, Mishap mishap, bool may_read) {
  using enum WorkOpcode;
  switch (mishap) {
    case Mishap::short_receive:
    case Mishap::bad_receive_lkey:
    case Mishap::unreachable_receive:
      return pick(random, {send, send_imm});
    case Mishap::malformed_receive:
      return pick(random, {send, send_imm, write_imm});
    case Mishap::misaligned_atomic:
      return pick(random, {compare_swap, fetch_add});
    case Mishap::bad_rkey:
    case Mishap::no_rights:
    case Mishap::unreachable_remote:
      if (!may_read) return pick(random, {write, write_imm});
      return pick(random, {write, write_imm, read, compare_swap, fetch_add});
    default:
      if (!may_read) return pick(random, {send, send_imm, write, write_imm});
      return pick(random, {send, send, send_imm, write, write, write_imm, read, read, compare_swap,
                           fetch_add});
  }
}

Op draw_op(Random& random, Mishap mishap, bool may_read, bool long_messages) {
  Op op;
  op.mishap = mishap;
  op.opcode = draw_opcode(random, mishap, may_read);
  op.length_bytes = transport::is_atomic(op.opcode) ? 8 : draw_length(random, long_messages);
  if (mishap != Mishap::none) op.length_bytes = std::max(op.length_bytes, 1u);
  op.signaled = percent(random, 70);
  op.solicited = percent(random, 20);
  op.fence = percent(random, 10);
  op.is_inline = !transport::is_read_or_atomic(op.opcode) && op.length_bytes <= 512 &&
                 mishap != Mishap::bad_lkey && mishap != Mishap::unreachable_local &&
                 percent(random, 30);
  op.sge_bytes = cut(random, op.length_bytes, percent(random, 20) ? 7 : 2);
  op.immediate = static_cast<uint32_t>(random.next());
  // Often enough equal to what is in the cell.
  op.compare_add = random.below(4);
  op.swap = random.below(4);
  op.shared_counter =
      op.opcode == WorkOpcode::fetch_add && mishap == Mishap::none && percent(random, 30);
  if (op.shared_counter) op.compare_add = 1;
  op.payload_seed = random.fork();
  // Drawn from what is drawn already, so that seeds keep their meaning for all else.
  if (op.opcode == WorkOpcode::compare_swap && op.payload_seed % 2 == 0) {
    // Of these that are to fail, a FLUSH would not fail by its data.
    const bool flushes = mishap == Mishap::none && op.payload_seed % 8 == 0;
    op.opcode = flushes ? WorkOpcode::flush : WorkOpcode::atomic_write;
  }
  return op;
}

Receive draw_receive(Random& random, const Op& op) {
  Receive receive;
  uint32_t length_bytes = 0;
  if (op.mishap == Mishap::short_receive) {
    length_bytes = static_cast<uint32_t>(random.below(op.length_bytes));
  } else if (transport::is_send(op.opcode)) {
    length_bytes =
        op.length_bytes + (percent(random, 50) ? 0 : static_cast<uint32_t>(random.below(200)));
  }
  receive.sge_bytes = cut(random, length_bytes, percent(random, 20) ? 6 : 2);
  return receive;
}

Direction draw_direction(Random& random, bool may_read, bool with_mishap, uint64_t span_ns) {
  Direction direction;
  const bool long_messages = percent(random, 1);
  const uint64_t count = long_messages         ? random.between(1, 3)
                         : percent(random, 10) ? random.between(40, 120)
                                               : random.between(0, 25);
  const uint64_t mishap_at = random.below(std::max<uint64_t>(count, 1));
  uint64_t post_at_ns = 0;
  const uint32_t pause_percent = pick(random, {0u, 5u, 50u});
  for (uint64_t i = 0; i < count; ++i) {
    const bool mishap_now = with_mishap && i == mishap_at;
    Op op = draw_op(random, mishap_now ? draw_mishap(random, may_read) : Mishap::none, may_read,
                    long_messages);
    if (percent(random, pause_percent)) post_at_ns += random.below(span_ns / count + 1) * 2;
    op.post_at_ns = post_at_ns;
    direction.ops.push_back(std::move(op));
  }

  uint32_t largest = 64;
  for (const Op& op : direction.ops)
    if (touches_arena(op.opcode)) largest = std::max(largest, op.length_bytes);
  direction.arena_bytes = kCellBytes + largest + static_cast<uint32_t>(random.below(largest));
  for (Op& op : direction.ops) {
    if (transport::is_atomic(op.opcode) || op.opcode == WorkOpcode::atomic_write) {
      op.arena_offset = static_cast<uint32_t>(random.below(kCells)) * 8;
    } else {
      const uint32_t from = transport::is_write(op.opcode) ? kCellBytes : 0;
      op.arena_offset =
          from +
          static_cast<uint32_t>(random.below(direction.arena_bytes - from - op.length_bytes + 1));
    }
  }

  const bool late = percent(random, 30);
  uint64_t receive_at_ns = 0;
  for (const Op& op : direction.ops) {
    if (!consumes_receive(op.opcode)) continue;
    Receive receive = draw_receive(random, op);
    if (late && percent(random, 20)) receive_at_ns += random.below(span_ns / 4);
    receive.post_at_ns = receive_at_ns;
    direction.receives.push_back(std::move(receive));
  }
  direction.arena_seed = random.fork();
  direction.send_depth = pick(random, {1u, 2u, 5u, 16u, 256u});
  return direction;
}

uint32_t draw_psn(Random& random) {
  if (percent(random, 50)) return static_cast<uint32_t>(0x1000000 - random.between(0, 300));
  return static_cast<uint32_t>(random.below(0x1000000));
}

Connection draw_connection(Random& random, const Plan& plan) {
  Connection connection;
  connection.mtu_bytes = pick(random, {256u, 256u, 512u, 1024u, 2048u, 4096u});
  const bool with_mishap = percent(random, 20);
  const uint64_t mishap_side = random.below(2);
  const bool kill = percent(random, 4);
  const uint64_t kill_side = random.below(2);
  const bool leave = percent(random, 4);
  const uint64_t leave_side = random.below(2);
  const uint64_t span_ns = pick(random, {20 * kUs, 500 * kUs, 3 * kMs});
  const auto node_count = plan.nodes.size();
  connection.side[0].node = static_cast<uint32_t>(random.below(node_count));
  connection.side[1].node =
      percent(random, 10)
          ? connection.side[0].node
          : static_cast<uint32_t>((connection.side[0].node + 1 + random.below(node_count - 1)) %
                                  node_count);
  for (uint64_t i = 0; i < 2; ++i) {
    QpSide& side = connection.side[i];
    side.first_psn = draw_psn(random);
    side.timeout = static_cast<uint8_t>(plan.calm ? random.between(15, 17) : random.between(3, 9));
    if (percent(random, 3)) side.timeout = 0;
    side.retry_count = static_cast<uint8_t>(percent(random, 70) ? 7 : random.between(0, 7));
    side.rnr_retry = static_cast<uint8_t>(percent(random, 60) ? 7 : random.between(0, 7));
    side.min_rnr_timer =
        static_cast<uint8_t>(percent(random, 95) ? random.between(1, 12) : random.between(0, 31));
    side.max_rd_atomic = static_cast<uint8_t>(percent(random, 10) ? 0 : random.between(1, 16));
    if (kill && kill_side == i) side.kill_at_ns = random.below(span_ns);
    if (leave && leave_side == i) {
      side.leave_at_ns = random.below(span_ns);
      side.leave = pick(random, {Leave::reset, Leave::destroy});
    }
    if (percent(random, 10)) {
      side.pause_at_ns = random.below(span_ns);
      side.resume_after_ns = random.below(span_ns);
    }
  }
  for (uint64_t i = 0; i < 2; ++i)
    connection.direction[i] = draw_direction(random, connection.side[i].max_rd_atomic > 0,
                                             with_mishap && mishap_side == i, span_ns);
  return connection;
}

sim::NodeOptions draw_node(Random& random, bool ipv6, bool calm) {
  sim::NodeOptions node;
  node.ipv6 = ipv6;
  using enum transport::Recovery;
  node.limits.recovery =
      pick(random, {go_back_n, go_back_n, selective_repeat, selective_repeat, selective_repeat});
  node.limits.multipath = random.below(2) == 0;
  node.limits.window_packets = pick(random, {1u, 3u, 16u, 64u, 256u, 256u});
  node.limits.ack_interval_packets = pick(random, {1u, 4u, 16u, 64u, 64u});
  node.limits.quantum_frames = pick(random, {1u, 3u, 16u});
  node.poll_interval_ns = random.between(1, 5 * kUs);
  node.rx_burst = pick(random, {4u, 8u, 32u, 256u});
  node.tx_burst = pick(random, {4u, 8u, 32u, 256u});
  if (!calm && percent(random, 15)) node.no_buffer_ppm = pick(random, {10'000u, 300'000u});
  return node;
}

impairment::Impairments draw_link(Random& random, bool calm) {
  impairment::Impairments link;
  link.delay_ns = random.below(10 * kUs);
  if (percent(random, 30)) link.jitter_ns = random.below(10 * kUs);
  if (calm) return link;
  const uint32_t ppm = pick(random, {500u, 10'000u, 50'000u, 200'000u});
  if (percent(random, 2)) {  // the other direction may be well
    link.loss_ppm = 1'000'000;
    return link;
  }
  if (percent(random, 70)) link.loss_ppm = static_cast<uint32_t>(random.below(ppm));
  if (percent(random, 40)) link.duplicate_ppm = static_cast<uint32_t>(random.below(2 * ppm));
  if (percent(random, 40)) {
    link.reorder_ppm = static_cast<uint32_t>(random.below(2 * ppm));
    link.reorder_delay_ns = random.below(200 * kUs);
  }
  if (percent(random, 25)) link.corrupt_ppm = static_cast<uint32_t>(random.below(ppm));
  if (percent(random, 25)) {
    link.rate_bits_per_s = pick<uint64_t>(random, {100'000'000u, 1'000'000'000u, 10'000'000'000u});
    if (percent(random, 60)) link.queue_limit_bytes = random.between(5'000, 200'000);
  }
  if (percent(random, 10)) {
    link.outage_interval_ns = random.between(50 * kUs, 2 * kMs);
    link.outage_length_ns = random.between(10 * kUs, 2 * kMs);
  }
  return link;
}

}  // namespace

Plan draw_plan(uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.calm = percent(random, 30);
  plan.fabric_seed = random.fork();
  const uint64_t nodes = random.between(2, 3);
  const bool ipv6 = percent(random, 30);
  for (uint64_t i = 0; i < nodes; ++i) plan.nodes.push_back(draw_node(random, ipv6, plan.calm));
  for (uint64_t i = 0; i < nodes * nodes; ++i) plan.links.push_back(draw_link(random, plan.calm));
  const uint64_t connections = random.between(1, 3);
  for (uint64_t i = 0; i < connections; ++i)
    plan.connections.push_back(draw_connection(random, plan));
  // Drawn by itself: what seeds stood for before there were runs they stand for still.
  Random runs(~seed);
  for (sim::NodeOptions& node : plan.nodes) node.runs = runs.below(2) == 0;
  // Where payload is lent the ICRC is owed, by which nobody sees that a frame was changed.
  const auto corrupts = [](const impairment::Impairments& link) { return link.corrupt_ppm != 0; };
  plan.lends = runs.below(2) == 0 && std::ranges::none_of(plan.links, corrupts);
  return plan;
}

}  // namespace rocemu::sim_scenarios
