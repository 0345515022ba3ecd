#include "tests/e2e/bytes/round.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

constexpr std::chrono::seconds kStalled{60};
constexpr int kEventPatienceMs = 20000;

// One end of the QP pair. The CQs may be one and the same.
struct End {
  ChannelPtr channel;
  CqPtr send_cq, own_receive_cq;
  QpPtr qp;

  ibv_cq* receive_cq() const { return own_receive_cq ? own_receive_cq.get() : send_cq.get(); }
};

struct RoundShape {
  uint32_t windows[2];                   // by direction
  uint32_t send_sge[2], receive_sge[2];  // by end
  uint32_t inline_bytes;
  bool all_signalled[2];  // by end
  bool one_cq[2];         // by end
  bool by_events;
  RcOptions rc;
};

uint8_t clamp_depth(int device_limit) {
  return static_cast<uint8_t>(std::clamp(device_limit, 1, 16));
}

RoundShape draw_shape(const Bench& bench, Random& random) {
  RoundShape shape{};
  for (int i = 0; i < 2; ++i) {
    const ibv_device_attr& attr = bench.devices[i].attr;
    const uint32_t most_wr = std::min<uint32_t>(static_cast<uint32_t>(attr.max_qp_wr), 128);
    const uint32_t most_sge = std::min<uint32_t>(static_cast<uint32_t>(attr.max_sge), kMaxSge);
    shape.windows[i] = random.log_uniform(most_wr);
    shape.send_sge[i] = random.between32(1, most_sge);
    shape.receive_sge[i] = random.between32(1, most_sge);
    shape.all_signalled[i] = random.one_in(4);
    shape.one_cq[i] = random.one_in(2);
  }
  shape.inline_bytes = random.one_in(4) ? 0 : random.between32(1, 200);
  shape.by_events = random.one_in(4);

  RcOptions& rc = shape.rc;
  const int most_mtu = std::min(bench.devices[0].port.active_mtu, bench.devices[1].port.active_mtu);
  rc.path_mtu = static_cast<ibv_mtu>(random.between(IBV_MTU_256, static_cast<uint64_t>(most_mtu)));
  const auto psn = [&random] {
    return random.one_in(4) ? 0xffffff - random.between32(0, 100) : random.next32() & 0xffffff;
  };
  rc.sq_psn = psn();
  rc.rq_psn = psn();
  const uint8_t most_reads = std::min({clamp_depth(bench.devices[0].attr.max_qp_rd_atom),
                                       clamp_depth(bench.devices[1].attr.max_qp_rd_atom),
                                       clamp_depth(bench.devices[0].attr.max_qp_init_rd_atom),
                                       clamp_depth(bench.devices[1].attr.max_qp_init_rd_atom)});
  rc.max_rd_atomic = rc.max_dest_rd_atomic = static_cast<uint8_t>(random.between(1, most_reads));
  return shape;
}

QpPtr make_qp(const Device& device, const End& end, const RoundShape& shape, int side) {
  ibv_qp_init_attr init{};
  init.send_cq = end.send_cq.get();
  init.recv_cq = end.receive_cq();
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = shape.all_signalled[side] ? 1 : 0;
  init.cap.max_send_wr = shape.windows[side];
  init.cap.max_recv_wr = shape.windows[1 - side];
  init.cap.max_send_sge = shape.send_sge[side];
  init.cap.max_recv_sge = shape.receive_sge[side];
  init.cap.max_inline_data = shape.inline_bytes;
  return QpPtr(must(ibv_create_qp(device.pd.get(), &init), "ibv_create_qp"));
}

End make_end(const Device& device, const RoundShape& shape, int side) {
  End end;
  ibv_context* context = device.context.get();
  if (shape.by_events) {
    end.channel.reset(must(ibv_create_comp_channel(context), "ibv_create_comp_channel"));
    const int fd = end.channel->fd;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) fail_errno(errno, "fcntl");
  }
  const auto make_cq = [&](uint32_t entries) {
    return CqPtr(
        must(ibv_create_cq(context, static_cast<int>(entries), nullptr, end.channel.get(), 0),
             "ibv_create_cq"));
  };
  const uint32_t sends = shape.windows[side], receives = shape.windows[1 - side];
  if (shape.one_cq[side]) {
    end.send_cq = make_cq(sends + receives);
  } else {
    end.send_cq = make_cq(sends);
    end.own_receive_cq = make_cq(receives);
  }
  end.qp = make_qp(device, end, shape, side);
  return end;
}

// Takes completions from one CQ to the flows.
bool drain(ibv_cq* cq, Flow (&flows)[2], uint64_t tag, Random& random) {
  ibv_wc wcs[16];
  const int count = ibv_poll_cq(cq, static_cast<int>(random.between(1, 16)), wcs);
  if (count < 0) fail("ibv_poll_cq returned %d", count);
  for (int i = 0; i < count; ++i) {
    const FlowCompletion completion = flow_completion(wcs[i].wr_id, tag);
    Flow& flow = flows[completion.direction];
    if (completion.is_receive) {
      flow.on_receive_completion(wcs[i]);
    } else {
      flow.on_send_completion(wcs[i]);
    }
  }
  return count > 0;
}

void arm(ibv_cq* cq) { must(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq"); }

// Sleeps until a channel has an event and takes all there are.
void await_event(const End (&ends)[2]) {
  pollfd fds[2] = {{ends[0].channel->fd, POLLIN, 0}, {ends[1].channel->fd, POLLIN, 0}};
  const int ready = poll(fds, 2, kEventPatienceMs);
  if (ready < 0) fail_errno(errno, "poll");
  if (ready == 0) fail("no completion event in %d ms although the CQs are armed", kEventPatienceMs);
  for (const End& end : ends) {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    while (ibv_get_cq_event(end.channel.get(), &cq, &cq_context) == 0) {
      if (cq != end.send_cq.get() && cq != end.receive_cq()) fail("an event for an unknown CQ");
      ibv_ack_cq_events(cq, 1);
    }
  }
}

void run_flows(Flow (&flows)[2], const End (&ends)[2], uint64_t tag, bool by_events,
               Random& random) {
  std::vector<ibv_cq*> cqs;
  for (const End& end : ends) {
    cqs.push_back(end.send_cq.get());
    if (end.own_receive_cq) cqs.push_back(end.own_receive_cq.get());
  }
  const auto drain_all = [&] {
    bool any = false;
    for (ibv_cq* cq : cqs) any |= drain(cq, flows, tag, random);
    return any;
  };
  Clock::time_point last_progress = Clock::now();
  while (!flows[0].done() || !flows[1].done()) {
    bool progress = false;
    for (Flow& flow : flows) progress |= random.one_in(2) && flow.post();
    progress |= drain_all();
    if (progress) {
      last_progress = Clock::now();
      continue;
    }
    if (Clock::now() - last_progress > kStalled) {
      const Flow& stuck = flows[flows[0].in_flight() != 0 ? 0 : 1];
      fail("no completion for %llds; oldest in flight: %s",
           static_cast<long long>(kStalled.count()),
           stuck.in_flight() != 0 ? stuck.oldest().describe().c_str() : "none");
    }
    if (!by_events) {
      sched_yield();
      continue;
    }
    progress |= flows[0].post() | flows[1].post();
    for (ibv_cq* cq : cqs) arm(cq);
    if (!progress && !drain_all()) await_event(ends);
  }
}

void print_shape(const RoundShape& shape, uint64_t messages) {
  std::printf(
      "  round: %llu messages, MTU %u, windows %u %u, SGEs %u/%u %u/%u, inline %u, reads "
      "%u%s%s%s\n",
      static_cast<unsigned long long>(messages), 128u << shape.rc.path_mtu, shape.windows[0],
      shape.windows[1], shape.send_sge[0], shape.receive_sge[0], shape.send_sge[1],
      shape.receive_sge[1], shape.inline_bytes, shape.rc.max_rd_atomic,
      shape.by_events ? ", events" : "", shape.one_cq[0] ? ", one CQ at a" : "",
      shape.one_cq[1] ? ", one CQ at b" : "");
  std::fflush(stdout);
}

}  // namespace

void Bench::check_arenas() const {
  for (const Direction& direction : directions) {
    for (const Arena* arena : {direction.requester.get(), direction.responder.get()}) {
      if (const auto wrong = arena->difference())
        fail("outside of any message: %s", wrong->c_str());
    }
  }
}

Bench make_bench(Device a, Device b, uint32_t max_message_bytes, Random& random) {
  Bench bench{{std::move(a), std::move(b)}, {}};
  const size_t bytes = Flow::arena_bytes(max_message_bytes, kMaxSge);
  for (int i = 0; i < 2; ++i) {
    Bench::Direction& direction = bench.directions[i];
    direction.requester = std::make_unique<Arena>(bytes);
    direction.responder = std::make_unique<Arena>(bytes);
    direction.requester_regions =
        std::make_unique<Regions>(bench.devices[i], *direction.requester, random);
    direction.responder_regions =
        std::make_unique<Regions>(bench.devices[1 - i], *direction.responder, random);
  }
  return bench;
}

uint64_t run_round(Bench& bench, const std::vector<const Operation*>& operations, uint64_t messages,
                   SizePlan& sizes, Random& random, bool verbose) {
  const RoundShape shape = draw_shape(bench, random);
  if (verbose) print_shape(shape, messages);
  const End ends[2] = {make_end(bench.devices[0], shape, 0), make_end(bench.devices[1], shape, 1)};
  connect_pair(ends[0].qp.get(), bench.devices[0], ends[1].qp.get(), bench.devices[1], shape.rc);

  const uint64_t tag = random.next();
  Random timing(random.next());
  const uint64_t share = random.between(0, messages);
  const auto make_flow = [&](unsigned direction) {
    const unsigned requester = direction, responder = 1 - direction;
    const Bench::Direction& memory = bench.directions[direction];
    const uint32_t device_reads = static_cast<uint32_t>(bench.devices[requester].attr.max_sge_rd);
    const FlowEnd from{ends[requester].qp.get(), memory.requester.get(),
                       memory.requester_regions.get(), shape.send_sge[requester],
                       std::clamp<uint32_t>(device_reads, 1, shape.send_sge[requester])};
    const FlowEnd to{ends[responder].qp.get(), memory.responder.get(),
                     memory.responder_regions.get(), shape.receive_sge[responder], 1};
    FlowOptions options;
    options.tag = tag;
    options.direction = direction;
    options.first_number = random.next() >> 3;
    options.seed = random.next();
    options.sizes.resize(direction == 0 ? share : messages - share);
    for (uint32_t& bytes : options.sizes) bytes = sizes.draw(random, 128u << shape.rc.path_mtu);
    options.window = shape.windows[direction];
    options.max_inline_bytes = shape.inline_bytes;
    options.all_signalled = shape.all_signalled[requester];
    options.operations = operations;
    return Flow(from, to, std::move(options), timing);
  };
  Flow flows[2] = {make_flow(0), make_flow(1)};
  run_flows(flows, ends, tag, shape.by_events, timing);
  return flows[0].verified_bytes() + flows[1].verified_bytes();
}

}  // namespace rocemu::e2e
