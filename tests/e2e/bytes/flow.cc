#include "tests/e2e/bytes/flow.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

constexpr uint32_t kMaxReceiveSlackBytes = 2048;
constexpr unsigned kAllRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

void copy_pieces(Arena& from, const std::vector<Piece>& sources, Arena& to,
                 const std::vector<Piece>& targets, uint32_t bytes) {
  size_t source = 0, target = 0;
  uint32_t source_done = 0, target_done = 0;
  while (bytes != 0) {
    if (source_done == sources[source].bytes) {
      ++source, source_done = 0;
      continue;
    }
    if (target_done == targets[target].bytes) {
      ++target, target_done = 0;
      continue;
    }
    const uint32_t run =
        std::min({bytes, sources[source].bytes - source_done, targets[target].bytes - target_done});
    std::memcpy(to.shadow(targets[target].offset + target_done),
                from.shadow(sources[source].offset + source_done), run);
    source_done += run, target_done += run, bytes -= run;
  }
}

std::vector<ibv_sge> sges(const FlowEnd& end, const std::vector<Piece>& pieces, unsigned access,
                          Random& random) {
  std::vector<ibv_sge> list;
  for (const Piece& piece : pieces) {
    const Regions::Region& region = end.regions->pick(random, access);
    list.push_back({region.address + piece.offset, piece.bytes, region.mr->lkey});
  }
  return list;
}

void move_by(std::vector<Piece>& pieces, size_t offset) {
  for (Piece& piece : pieces) piece.offset += offset;
}

}  // namespace

Regions::Regions(const Device& device, const Arena& arena, Random& random) {
  const auto add = [&](unsigned access, uint64_t address) {
    MrPtr mr = register_memory_at(device.pd.get(), reinterpret_cast<void*>(arena.address()),
                                  arena.bytes(), address, access);
    must(mr.get(), "ibv_reg_mr_iova");
    regions_.push_back({std::move(mr), address, access});
  };
  constexpr uint64_t kPage = 4096;
  add(kAllRights, arena.address());
  add(kAllRights, random.between(1, 1u << 20) * kPage);
  add(kAllRights, (uint64_t{1} << 56) + random.between(0, 1u << 20) * kPage);
  add(0, arena.address());
  add(IBV_ACCESS_LOCAL_WRITE, arena.address());
  add(IBV_ACCESS_REMOTE_READ, arena.address());
}

const Regions::Region& Regions::pick(Random& random, unsigned access) const {
  for (;;) {
    const Region& region = regions_[random.between(0, regions_.size() - 1)];
    if ((region.access & access) == access) return region;
  }
}

FlowCompletion flow_completion(uint64_t wr_id, uint64_t tag) {
  const uint64_t plain = wr_id ^ tag;
  return {plain >> 2, static_cast<unsigned>(plain >> 1 & 1), (plain & 1) != 0};
}

Flow::Flow(const FlowEnd& requester, const FlowEnd& responder, FlowOptions options, Random& timing)
    : requester_(requester), responder_(responder), options_(std::move(options)), timing_(timing) {}

size_t Flow::arena_bytes(uint32_t max_message_bytes, uint32_t max_sge) {
  const size_t largest_chunk =
      Layout::most_bytes(max_sge + 1, size_t{max_message_bytes} + kMaxReceiveSlackBytes);
  return 4 * ((largest_chunk + 4095) / 4096 * 4096);
}

uint64_t Flow::wr_id(const Message& message, bool is_receive) const {
  return (message.number << 2 | options_.direction << 1 | (is_receive ? 1u : 0u)) ^ options_.tag;
}

// The last message posted must be signalled when nothing more could be posted until it completes:
// room for the next one is certain only while an arena is at most a quarter full.
bool Flow::last_must_signal() const {
  return posted_ == options_.sizes.size() || in_flight_.size() >= options_.window ||
         4 * requester_.arena->used_bytes() > requester_.arena->bytes() ||
         4 * responder_.arena->used_bytes() > responder_.arena->bytes();
}

bool Flow::post() {
  const size_t first = in_flight_.size();
  const uint64_t wanted = timing_.between(1, 4);
  while (in_flight_.size() < first + wanted && posted_ < options_.sizes.size() &&
         in_flight_.size() < options_.window) {
    if (!plan_one()) break;
  }
  if (in_flight_.size() == first) return false;
  if (last_must_signal()) in_flight_.back().signalled = true;

  const bool receives_come_late = timing_.one_in(64);
  if (!receives_come_late) post_receives(first);
  post_sends(first);
  if (receives_come_late) {
    const Clock::time_point until = Clock::now() + std::chrono::microseconds(50);
    while (Clock::now() < until) {
    }
    post_receives(first);
  }
  for (size_t i = first; i < in_flight_.size(); ++i) {
    if (in_flight_[i].inlined) requester_.arena->scribble(in_flight_[i].local);
  }
  return true;
}

// Draws the next message and appends it, if both arenas have room for the largest there may be.
bool Flow::plan_one() {
  const auto has_room = [](const Arena& arena) { return 2 * arena.used_bytes() <= arena.bytes(); };
  if (!has_room(*requester_.arena) || !has_room(*responder_.arena)) return false;
  Random random(mix64(options_.seed + posted_));
  Message message = draw_message(random);
  lay_out(message, random);
  in_flight_.push_back(std::move(message));
  ++posted_;
  return true;
}

Message Flow::draw_message(Random& random) const {
  Message message;
  message.operation = options_.operations[random.between(0, options_.operations.size() - 1)];
  message.number = options_.first_number + posted_;
  message.seed = random.next();
  message.bytes = options_.sizes[posted_];
  message.immediate = message.operation->carries_immediate ? random.next32() : 0;
  message.signalled = options_.all_signalled || !random.one_in(3);
  message.inlined = message.operation->payload != Payload::kFromRemoteMemory &&
                    message.bytes <= options_.max_inline_bytes && random.one_in(2);
  message.fenced = random.one_in(8);
  message.solicited = message.operation->takes_receive && random.one_in(4);
  message.received = !message.operation->takes_receive;
  return message;
}

// Of the receive's pieces, then of the remote memory that a WRITE or READ names.
std::vector<uint32_t> Flow::draw_remote_sizes(const Message& message, Random& random) const {
  std::vector<uint32_t> sizes;
  const Payload payload = message.operation->payload;
  if (message.operation->takes_receive) {
    const uint32_t slack = random.one_in(2) ? 0 : random.between32(0, kMaxReceiveSlackBytes);
    const uint32_t bytes = (payload == Payload::kIntoReceive ? message.bytes : 0) + slack;
    sizes = cut(random, bytes, random.between32(bytes == 0 ? 0 : 1, responder_.max_sge));
  }
  if (payload != Payload::kIntoReceive) sizes.push_back(message.bytes);
  return sizes;
}

void Flow::lay_out(Message& message, Random& random) {
  const Payload payload = message.operation->payload;
  const uint32_t most_sge =
      payload == Payload::kFromRemoteMemory ? requester_.max_read_sge : requester_.max_sge;
  const uint32_t pieces = random.between32(message.bytes == 0 ? 0 : 1, most_sge);
  Layout local = Layout::place(random, cut(random, message.bytes, pieces));
  Layout remote = Layout::place(random, draw_remote_sizes(message, random));

  const std::optional<Chunk> local_chunk = requester_.arena->allocate(local.bytes);
  const std::optional<Chunk> remote_chunk = responder_.arena->allocate(remote.bytes);
  if (!local_chunk || !remote_chunk) fail("an arena has less room than it said");
  message.local = *local_chunk;
  message.remote = *remote_chunk;
  requester_.arena->fill(message.local, random.next());
  responder_.arena->fill(message.remote, random.next());
  move_by(local.pieces, message.local.offset);
  move_by(remote.pieces, message.remote.offset);
  message.local_pieces = std::move(local.pieces);
  message.receive_pieces = std::move(remote.pieces);
  if (payload != Payload::kIntoReceive) {
    message.remote_piece = message.receive_pieces.back();
    message.receive_pieces.pop_back();
  }
}

void Flow::post_receives(size_t first) {
  std::vector<std::vector<ibv_sge>> lists;
  std::vector<ibv_recv_wr> chain;
  for (size_t i = first; i < in_flight_.size(); ++i) {
    const Message& message = in_flight_[i];
    if (!message.operation->takes_receive) continue;
    Random random(message.seed + 1);
    lists.push_back(sges(responder_, message.receive_pieces, IBV_ACCESS_LOCAL_WRITE, random));
    chain.push_back({.wr_id = wr_id(message, true),
                     .next = nullptr,
                     .sg_list = lists.back().data(),
                     .num_sge = static_cast<int>(lists.back().size())});
  }
  if (chain.empty()) return;
  for (size_t i = 1; i < chain.size(); ++i) chain[i - 1].next = &chain[i];
  ibv_recv_wr* bad = nullptr;
  must(ibv_post_recv(responder_.qp, chain.data(), &bad), "ibv_post_recv");
}

void Flow::post_sends(size_t first) {
  std::vector<std::vector<ibv_sge>> lists(in_flight_.size() - first);
  std::vector<ibv_send_wr> chain;
  for (size_t i = first; i < in_flight_.size(); ++i) {
    chain.push_back(send_wr(in_flight_[i], lists[i - first]));
  }
  for (size_t i = 1; i < chain.size(); ++i) chain[i - 1].next = &chain[i];
  ibv_send_wr* bad = nullptr;
  must(ibv_post_send(requester_.qp, chain.data(), &bad), "ibv_post_send");
}

ibv_send_wr Flow::send_wr(const Message& message, std::vector<ibv_sge>& list) const {
  Random random(message.seed + 2);
  const Payload payload = message.operation->payload;
  const bool reads = payload == Payload::kFromRemoteMemory;
  list =
      sges(requester_, message.local_pieces, reads ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0u, random);
  if (message.inlined) {
    for (size_t i = 0; i < list.size(); ++i) {
      list[i].addr = requester_.arena->address() + message.local_pieces[i].offset;
      list[i].lkey = random.next32();
    }
  }
  ibv_send_wr wr{};
  wr.wr_id = wr_id(message, false);
  wr.sg_list = list.data();
  wr.num_sge = static_cast<int>(list.size());
  wr.opcode = message.operation->wr_opcode;
  const auto flag = [&wr](bool set, ibv_send_flags bit) {
    if (set) wr.send_flags |= static_cast<unsigned>(bit);
  };
  flag(message.signalled && !(options_.all_signalled && random.one_in(2)), IBV_SEND_SIGNALED);
  flag(message.inlined, IBV_SEND_INLINE);
  flag(message.fenced, IBV_SEND_FENCE);
  flag(message.solicited, IBV_SEND_SOLICITED);
  if (message.operation->carries_immediate) wr.imm_data = message.immediate;
  if (payload != Payload::kIntoReceive) {
    const Regions::Region& region =
        responder_.regions->pick(random, reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
    wr.wr.rdma.remote_addr = region.address + message.remote_piece.offset;
    wr.wr.rdma.rkey = region.mr->rkey;
  }
  return wr;
}

void Flow::on_send_completion(const ibv_wc& wc) {
  const auto is_next = [](const Message& m) { return !m.sent && m.signalled; };
  const auto completed = std::find_if(in_flight_.begin(), in_flight_.end(), is_next);
  if (completed == in_flight_.end()) {
    fail("a send completion when none is due: %s", wc_text(wc).c_str());
  }
  const std::string message = completed->describe();
  if (wc.status != IBV_WC_SUCCESS) fail("%s: %s", message.c_str(), wc_text(wc).c_str());
  if (wc.wr_id != wr_id(*completed, false)) {
    fail("send completions out of order: due is %s, came %s", message.c_str(), wc_text(wc).c_str());
  }
  if (wc.opcode != completed->operation->wc_opcode) {
    fail("%s: wrong opcode: %s", message.c_str(), wc_text(wc).c_str());
  }
  if (wc.qp_num != requester_.qp->qp_num) {
    fail("%s: wrong qp_num: %s", message.c_str(), wc_text(wc).c_str());
  }
  if (wc.opcode == IBV_WC_RDMA_READ && wc.byte_len != completed->bytes) {
    fail("%s: wrong byte_len: %s", message.c_str(), wc_text(wc).c_str());
  }
  for (auto m = in_flight_.begin(); m != completed + 1; ++m) {
    if (m->sent) continue;
    m->sent = true;
    if (!m->operation->takes_receive) verify_target(*m);
  }
  retire();
}

void Flow::on_receive_completion(const ibv_wc& wc) {
  const auto is_next = [](const Message& m) { return !m.received; };
  const auto completed = std::find_if(in_flight_.begin(), in_flight_.end(), is_next);
  if (completed == in_flight_.end()) {
    fail("a receive completion when none is due: %s", wc_text(wc).c_str());
  }
  const std::string message = completed->describe();
  if (wc.status != IBV_WC_SUCCESS) fail("%s: %s", message.c_str(), wc_text(wc).c_str());
  if (wc.wr_id != wr_id(*completed, true)) {
    fail("receive completions out of order: due is %s, came %s", message.c_str(),
         wc_text(wc).c_str());
  }
  if (wc.opcode != completed->operation->receive_wc_opcode || wc.byte_len != completed->bytes ||
      wc.qp_num != responder_.qp->qp_num) {
    fail("%s: wrong receive completion: %s", message.c_str(), wc_text(wc).c_str());
  }
  const bool has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (has_immediate != completed->operation->carries_immediate ||
      (has_immediate && wc.imm_data != completed->immediate)) {
    fail("%s: immediate data %#x%s, must be %#x: %s", message.c_str(), wc.imm_data,
         has_immediate ? "" : " (flag not set)", completed->immediate, wc_text(wc).c_str());
  }
  completed->received = true;
  verify_target(*completed);
  retire();
}

void Flow::verify_target(Message& message) {
  Arena& local = *requester_.arena;
  Arena& remote = *responder_.arena;
  switch (message.operation->payload) {
    case Payload::kIntoReceive:
      copy_pieces(local, message.local_pieces, remote, message.receive_pieces, message.bytes);
      break;
    case Payload::kIntoRemoteMemory:
      copy_pieces(local, message.local_pieces, remote, {message.remote_piece}, message.bytes);
      break;
    case Payload::kFromRemoteMemory:
      copy_pieces(remote, {message.remote_piece}, local, message.local_pieces, message.bytes);
      break;
  }
  const bool reads = message.operation->payload == Payload::kFromRemoteMemory;
  if (const auto wrong =
          (reads ? local : remote).difference(reads ? message.local : message.remote)) {
    fail("%s: target: %s", message.describe().c_str(), wrong->c_str());
  }
  verified_bytes_ += message.bytes;
}

void Flow::retire() {
  while (!in_flight_.empty() && in_flight_.front().sent && in_flight_.front().received) {
    const Message& message = in_flight_.front();
    const bool reads = message.operation->payload == Payload::kFromRemoteMemory;
    if (message.inlined) {
      requester_.arena->restore(message.local);
    } else if (const auto wrong = (reads ? responder_ : requester_)
                                      .arena->difference(reads ? message.remote : message.local)) {
      fail("%s: the source was changed: %s", message.describe().c_str(), wrong->c_str());
    }
    requester_.arena->release(message.local);
    responder_.arena->release(message.remote);
    in_flight_.pop_front();
  }
}

}  // namespace rocemu::e2e
