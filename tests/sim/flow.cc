#include "tests/sim/flow.h"

#include <algorithm>
#include <cstring>

namespace rocemu::sim_scenarios {

using transport::Completion;
using transport::Sge;
using transport::WcOpcode;

namespace {

constexpr uint32_t kBadKey = 1;
constexpr std::byte kUnwritten{0x11};
constexpr std::byte kReused{0x5c};  // what the program writes to a buffer that is its own again

constexpr uint32_t kEverything = transport::kLocalWrite | transport::kRemoteWrite |
                                 transport::kRemoteRead | transport::kRemoteAtomic |
                                 transport::kFlushGlobal;

bool seen_by_requester(Mishap mishap) {
  return mishap == Mishap::bad_lkey || mishap == Mishap::malformed ||
         mishap == Mishap::unreachable_local;
}

WcStatus requester_status(Mishap mishap) {
  switch (mishap) {
    case Mishap::bad_lkey:
    case Mishap::unreachable_local:
      return WcStatus::local_protection_error;
    case Mishap::malformed:
      return WcStatus::local_qp_operation_error;
    case Mishap::bad_rkey:
    case Mishap::no_rights:
    case Mishap::unreachable_remote:
      return WcStatus::remote_access_error;
    case Mishap::misaligned_atomic:
    case Mishap::short_receive:
      return WcStatus::remote_invalid_request_error;
    default:
      return WcStatus::remote_operation_error;
  }
}

WcStatus receiver_status(Mishap mishap) {
  switch (mishap) {
    case Mishap::short_receive:
      return WcStatus::local_length_error;
    case Mishap::malformed_receive:
      return WcStatus::local_qp_operation_error;
    case Mishap::bad_receive_lkey:
    case Mishap::unreachable_receive:
      return WcStatus::local_protection_error;
    case Mishap::bad_rkey:
    case Mishap::no_rights:
      return WcStatus::local_access_error;  // of a WRITE with immediate
    default:
      return WcStatus::flush_error;
  }
}

}  // namespace

Flow::Flow(const Plan& plan, const Connection& connection, uint32_t direction, Party& requester,
           Party& responder, SharedCounter& counter, sim::Fabric& fabric, Verdict& verdict,
           std::string name)
    : plan_(plan),
      connection_(connection),
      side_(connection.side[direction]),
      direction_(connection.direction[direction]),
      requester_(requester),
      responder_(responder),
      counter_(counter),
      fabric_(fabric),
      verdict_(verdict),
      name_(std::move(name)),
      model_(direction_),
      consumer_index_(direction_.ops.size()) {
  sim::SimMemory& memory = responder_.node.memory();
  arena_ = memory.allocate(direction_.arena_bytes);
  arena_key_ = memory.register_region(kPd, arena_, direction_.arena_bytes, kEverything);
  std::ranges::copy(model_.initial(), memory.at(arena_, direction_.arena_bytes).begin());
  for (size_t i = 0; i < direction_.ops.size(); ++i) {
    prepare(i);
    targets_.push_back(target_of(i));
    if (!consumes_receive(direction_.ops[i].opcode)) continue;
    consumer_index_[i] = consumers_.size();
    consumers_.push_back(i);
  }
  for (const Receive& receive : direction_.receives) {
    receives_.push_back(place(responder_.node, receive.sge_bytes, transport::kLocalWrite));
    fill(responder_.node, receives_.back(), kUnwritten);
  }
  if (plan_.fabric_seed % 2 == 0) responder_.receive_cq.memory = &memory;
  requester_.send_cq.on_push = [this](const Completion& completion) { on_sent(completion); };
  responder_.receive_cq.on_push = [this](const Completion& completion) { on_received(completion); };
}

void Flow::fail(const std::string& what, size_t op) const {
  verdict_.fail(name_ + ", request " + std::to_string(op) + ": " + what);
}

std::vector<Flow::Piece> Flow::place(sim::EndpointNode& node, const std::vector<uint32_t>& lengths,
                                     uint32_t access) {
  std::vector<Piece> pieces;
  for (uint32_t length : lengths) {
    const uint64_t address = node.memory().allocate(length);
    pieces.push_back(
        {address, length, node.memory().register_region(kPd, address, length, access)});
  }
  return pieces;
}

std::vector<Sge> Flow::sges_of(const std::vector<Piece>& pieces) const {
  std::vector<Sge> sges;
  for (const Piece& piece : pieces)
    sges.push_back({piece.address, piece.length_bytes, wire::LKey{piece.key}});
  return sges;
}

std::vector<std::byte> Flow::gather(sim::EndpointNode& node,
                                    const std::vector<Piece>& pieces) const {
  std::vector<std::byte> bytes;
  for (const Piece& piece : pieces) {
    const auto part = node.memory().at(piece.address, piece.length_bytes);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

void Flow::fill(sim::EndpointNode& node, const std::vector<Piece>& pieces, std::byte with) {
  for (const Piece& piece : pieces)
    std::ranges::fill(node.memory().at(piece.address, piece.length_bytes), with);
}

void Flow::prepare(size_t index) {
  const Op& op = direction_.ops[index];
  if (op.is_inline) {
    local_.emplace_back();
    return;
  }
  const bool answered = transport::brings_data(op.opcode);
  // A source needs no right to be written, and is not given any.
  local_.push_back(place(requester_.node, op.sge_bytes,
                         answered ? transport::kLocalWrite : transport::kLocalRead));
  if (answered) {
    fill(requester_.node, local_.back(), kUnwritten);
    return;
  }
  const std::vector<std::byte> payload = payload_of(op);
  size_t offset = 0;
  for (const Piece& piece : local_.back()) {
    std::copy_n(payload.begin() + static_cast<ptrdiff_t>(offset), piece.length_bytes,
                requester_.node.memory().at(piece.address, piece.length_bytes).begin());
    offset += piece.length_bytes;
  }
}

void Flow::start() {
  for (size_t i = 0; i < direction_.receives.size(); ++i) {
    const uint64_t at_ns = direction_.receives[i].post_at_ns;
    if (at_ns == 0) {
      post_receive(i);
    } else {
      fabric_.at(at_ns, [this, i] { post_receive(i); });
    }
  }
  for (size_t i = 0; i < direction_.ops.size(); ++i) {
    // Requests of the same time are posted together.
    if (i + 1 < direction_.ops.size() &&
        direction_.ops[i + 1].post_at_ns == direction_.ops[i].post_at_ns)
      continue;
    fabric_.at(direction_.ops[i].post_at_ns, [this, i] {
      due_ = i + 1;
      post_due();
    });
  }
}

void Flow::post_due() {
  if (posted_ >= due_ || requester_.send_queue.full() || requester_.gone) return;
  while (posted_ < due_ && !requester_.send_queue.full()) post(posted_++);
  requester_.node.ring(requester_.qpn);
}

Flow::Target Flow::target_of(size_t index) {
  const Op& op = direction_.ops[index];
  if (!touches_arena(op.opcode)) return {};
  if (op.shared_counter) return {counter_.address, counter_.key};
  if (op.mishap == Mishap::none) return {arena_ + op.arena_offset, arena_key_};
  sim::SimMemory& memory = responder_.node.memory();
  const uint64_t address = memory.allocate(op.length_bytes + 8);
  const uint32_t access = op.mishap == Mishap::no_rights ? transport::kLocalWrite : kEverything;
  uint32_t key = memory.register_region(kPd, address, op.length_bytes + 8, access);
  if (op.mishap == Mishap::unreachable_remote) memory.break_region(key);
  if (op.mishap == Mishap::bad_rkey) key = kBadKey;
  return {address + (op.mishap == Mishap::misaligned_atomic ? 4 : 0), key};
}

void Flow::post(size_t index) {
  const Op& op = direction_.ops[index];
  const Target target = targets_[index];
  sim::SendRequest request;
  request.wr_id = index;
  request.opcode = op.opcode;
  request.signaled = op.signaled;
  request.solicited = op.solicited;
  request.fence = op.fence;
  request.immediate = op.immediate;
  request.remote_address = target.address;
  request.rkey = target.key;
  request.compare_add = op.compare_add;
  request.swap = op.swap;
  if (op.mishap == Mishap::malformed) request.fault = WcStatus::local_qp_operation_error;
  if (op.shared_counter) ++counter_.posted;
  if (op.opcode == WorkOpcode::flush) {
    request.feth = {.placement = verbs::placement::kGlobal,
                    .selectivity = static_cast<uint8_t>(op.payload_seed >> 8 & 1)};
    request.flush_bytes = op.length_bytes;
  } else if (op.is_inline) {
    request.inline_payload = payload_of(op);
  } else {
    request.sges = sges_of(local_[index]);
    // The last piece that has bytes is the one that goes wrong.
    for (size_t i = request.sges.size(); i-- > 0;) {
      if (request.sges[i].length_bytes == 0) continue;
      if (op.mishap == Mishap::bad_lkey) request.sges[i].lkey.value = kBadKey;
      if (op.mishap == Mishap::unreachable_local)
        requester_.node.memory().break_region(request.sges[i].lkey.value);
      break;
    }
  }
  requester_.send_queue.post(std::move(request));
}

void Flow::post_receive(size_t index) {
  if (responder_.gone) return;
  const Mishap mishap = direction_.ops[consumers_[index]].mishap;
  sim::ReceiveRequest request;
  request.wr_id = index;
  request.sges = sges_of(receives_[index]);
  if (mishap == Mishap::malformed_receive) request.fault = WcStatus::local_qp_operation_error;
  for (Sge& sge : request.sges) {
    if (mishap == Mishap::bad_receive_lkey) sge.lkey.value = kBadKey;
    if (mishap == Mishap::unreachable_receive && sge.length_bytes > 0)
      responder_.node.memory().break_region(sge.lkey.value);
  }
  responder_.receive_queue.post(std::move(request));
  ++receives_posted_;
  if (responder_.in_error()) responder_.node.ring(responder_.qpn);
}

std::optional<size_t> Flow::planned_mishap() const {
  for (size_t i = 0; i < direction_.ops.size(); ++i)
    if (direction_.ops[i].mishap != Mishap::none) return i;
  return std::nullopt;
}

void Flow::on_sent(const Completion& completion) {
  const size_t op = completion.wr_id;
  if (requester_.gone) fail("completed after its QP was reset or destroyed", op);
  if (completion.qpn != requester_.qpn) fail("completion bears another QP number", op);
  if (op < finished_ || op >= posted_) {
    fail("completed out of order, twice or unasked (" + std::to_string(finished_) + " expected)",
         op);
    return;
  }
  if (first_error_) {
    if (op != finished_) fail("a request before it was not flushed", finished_);
    if (completion.status != WcStatus::flush_error) fail("not flushed after an error", op);
    fill(requester_.node, local_[op], kReused);
    finished_ = op + 1;
    return;
  }
  for (; finished_ < op; ++finished_) {
    if (direction_.ops[finished_].signaled) {
      fail("never completed", finished_);
      return;
    }
    on_success(finished_);
  }
  ++finished_;
  if (completion.status != WcStatus::success) {
    on_failure(op, completion);
    return;
  }
  if (!direction_.ops[op].signaled) fail("unsignalled, but completed", op);
  if (completion.opcode !=
      (transport::is_send(direction_.ops[op].opcode)           ? WcOpcode::send
       : transport::is_write(direction_.ops[op].opcode)        ? WcOpcode::rdma_write
       : direction_.ops[op].opcode == WorkOpcode::read         ? WcOpcode::rdma_read
       : direction_.ops[op].opcode == WorkOpcode::compare_swap ? WcOpcode::compare_swap
       : direction_.ops[op].opcode == WorkOpcode::atomic_write ? WcOpcode::atomic_write
       : direction_.ops[op].opcode == WorkOpcode::flush        ? WcOpcode::flush
                                                               : WcOpcode::fetch_add))
    fail("completed with the wrong opcode", op);
  on_success(op);
}

void Flow::on_success(size_t index) {
  const Op& op = direction_.ops[index];
  if (op.mishap != Mishap::none) fail("succeeded, but must not", index);
  executed_ = std::max(executed_, index + 1);
  if (consumes_receive(op.opcode) && received_ <= consumer_index_[index])
    fail("completed before the peer has received it", index);
  if (transport::is_write(op.opcode) || op.opcode == WorkOpcode::atomic_write)
    check_arena(index + 1, op.arena_offset, op.length_bytes, "WRITE completed, data not there");
  if (transport::brings_data(op.opcode)) {
    const std::vector<std::byte> got = gather(requester_.node, local_[index]);
    if (op.shared_counter) {
      uint64_t value;
      std::memcpy(&value, got.data(), sizeof value);
      counter_.seen.push_back(value);
    } else if (got != model_.result(index)) {
      // A READ may see what requests behind it do, up to a fence. An atomic may not.
      size_t possible = index + 1;
      while (possible < posted_ && !direction_.ops[possible].fence) ++possible;
      if (op.opcode != WorkOpcode::read || !model_.allows(index, possible, op.arena_offset, got))
        fail("the answer is wrong", index);
    }
  }
  fill(requester_.node, local_[index], kReused);
}

void Flow::on_failure(size_t index, const Completion& completion) {
  first_error_ = index;
  first_status_ = completion.status;
  if (!may_fail(index, completion.status))
    fail("failed with status " + std::to_string(static_cast<int>(completion.status)) +
             " without cause",
         index);
  if (!requester_.in_error()) fail("failed, but the QP is not in ERROR", index);
  fill(requester_.node, local_[index], kReused);
}

bool Flow::may_fail(size_t index, WcStatus status) const {
  const Op& op = direction_.ops[index];
  switch (status) {
    case WcStatus::flush_error:
      return requester_.killed || requester_.in_error();
    case WcStatus::retry_exceeded_error:
      return !plan_.calm || responder_.in_error() || responder_.gone;
    case WcStatus::rnr_retry_exceeded_error:
      return consumes_receive(op.opcode) && side_.rnr_retry != 7;
    default:
      return op.mishap != Mishap::none && status == requester_status(op.mishap);
  }
}

void Flow::on_received(const Completion& completion) {
  const size_t index = completion.wr_id;
  if (responder_.gone) fail("received after the QP was reset or destroyed", 0);
  if (completion.qpn != responder_.qpn) fail("receive completion bears another QP number", 0);
  if (index != received_ || index >= receives_posted_) {
    verdict_.fail(name_ + ": receive " + std::to_string(index) + " completed, " +
                  std::to_string(received_) + " expected");
    return;
  }
  ++received_;
  const size_t op = consumers_[index];
  if (first_receive_error_) {
    if (completion.status != WcStatus::flush_error) fail("receive not flushed after an error", op);
    return;
  }
  if (completion.status == WcStatus::success) {
    check_message(completion, op);
    return;
  }
  first_receive_error_ = index;
  if (!responder_.in_error()) fail("a receive failed, but the QP is not in ERROR", op);
  const Mishap mishap = direction_.ops[op].mishap;
  if (completion.status != WcStatus::flush_error &&
      (mishap == Mishap::none || completion.status != receiver_status(mishap)))
    fail("its receive has status " + std::to_string(static_cast<int>(completion.status)), op);
}

void Flow::check_message(const Completion& completion, size_t index) {
  const Op& op = direction_.ops[index];
  executed_ = std::max(executed_, index + 1);
  if (index >= posted_) {
    fail("received before it was posted", index);
    return;
  }
  if (op.mishap != Mishap::none) fail("received, but must not be", index);
  const bool is_send = transport::is_send(op.opcode);
  const bool immediate = op.opcode == WorkOpcode::send_imm || op.opcode == WorkOpcode::write_imm;
  if (completion.opcode != (is_send ? WcOpcode::receive : WcOpcode::receive_rdma_with_imm) ||
      completion.byte_length != op.length_bytes || completion.has_immediate != immediate ||
      (immediate && completion.immediate != op.immediate) || completion.solicited != op.solicited)
    fail("its receive completion is wrong", index);
  const std::vector<Piece>& pieces = receives_[consumer_index_[index]];
  std::vector<std::byte> expected;
  if (is_send) {
    expected = payload_of(op);
  } else {
    check_arena(index + 1, op.arena_offset, op.length_bytes,
                "WRITE with immediate was announced, data not there");
  }
  const std::vector<std::byte> got = gather(responder_.node, pieces);
  expected.resize(got.size(), kUnwritten);
  if (got != expected) fail("received with other bytes", index);
  fill(responder_.node, pieces, kReused);
}

void Flow::check_arena(size_t executed, uint32_t offset, uint32_t length_bytes, const char* what) {
  const auto bytes = responder_.node.memory().at(arena_ + offset, length_bytes);
  if (!model_.allows(executed, posted_, offset, bytes)) fail(what, executed - 1);
}

// Whether the planned mishap is bound to be what ends this direction.
bool Flow::must_fail_as_planned() const {
  for (const QpSide& side : connection_.side)
    if (side.kill_at_ns || side.leave_at_ns) return false;
  if (!plan_.calm) return false;
  return connection_.side[0].rnr_retry == 7 && connection_.side[1].rnr_retry == 7;
}

// Without a timeout what is lost, or sent to a peer that does not answer, is never sent again.
bool Flow::may_wait_for_ever() const {
  return side_.timeout == 0 && (!plan_.calm || responder_.in_error() || responder_.gone) &&
         requester_.node.endpoint().load(requester_.qpn).unacknowledged_psns > 0;
}

void Flow::on_leave(const Party& party) {
  if (&party == &requester_)
    for (size_t i = 0; i < posted_; ++i) fill(requester_.node, local_[i], kReused);
  if (&party == &responder_)
    for (size_t i = 0; i < receives_posted_; ++i) fill(responder_.node, receives_[i], kReused);
}

void Flow::check_end() {
  const bool unfinished = requester_.gone || may_wait_for_ever();
  const std::optional<size_t> mishap = planned_mishap();
  if (unfinished) {
    // Nothing is known of what is under way.
  } else if (!first_error_) {
    // What is silent and not flushed was done, also when the QP has gone to ERROR since.
    while (finished_ < posted_ && !direction_.ops[finished_].signaled) on_success(finished_++);
    if (finished_ != posted_) fail("never completed", finished_);
    if (posted_ != direction_.ops.size()) fail("never posted: no room in the send queue", posted_);
  } else if (finished_ != posted_) {
    fail("not flushed", finished_);
  }
  if (!unfinished && requester_.send_queue.released() != requester_.send_queue.posted())
    fail("slots of the send queue were not released", finished_);
  if (mishap && must_fail_as_planned() && !unfinished &&
      (first_error_ != mishap || first_status_ != requester_status(direction_.ops[*mishap].mishap)))
    fail("should have failed as planned", *mishap);
  if (mishap && must_fail_as_planned() && !unfinished && !responder_.in_error() &&
      !seen_by_requester(direction_.ops[*mishap].mishap))
    fail("the responder should be in ERROR", *mishap);

  const bool clean = !first_error_ && !unfinished;
  const auto arena = responder_.node.memory().at(arena_, direction_.arena_bytes);
  if (!model_.allows(executed_, clean ? executed_ : posted_, 0, arena))
    fail("the arena is wrong at the end", executed_);
  for (size_t i = 0; i < (requester_.gone ? posted_ : finished_); ++i) {
    if (!requester_.gone && first_error_ && i >= *first_error_) break;
    for (std::byte byte : gather(requester_.node, local_[i]))
      if (byte != kReused) {
        fail("its buffer was written after it had completed", i);
        break;
      }
  }
}

void Flow::check_flushed() {
  if (!requester_.gone && finished_ != posted_) fail("not flushed at the end", finished_);
  if (!responder_.gone && received_ != receives_posted_)
    verdict_.fail(name_ + ": " + std::to_string(receives_posted_ - received_) +
                  " receives never completed");
  const size_t own_again = responder_.gone        ? receives_posted_
                           : first_receive_error_ ? *first_receive_error_
                                                  : received_;
  for (size_t i = 0; i < own_again; ++i)
    for (std::byte byte : gather(responder_.node, receives_[i]))
      if (byte != kReused) {
        fail("its receive was written after it had completed", consumers_[i]);
        break;
      }
}

}  // namespace rocemu::sim_scenarios
