#include "tests/e2e/stress/stress_end.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

namespace {

constexpr uint32_t kInlineBytes = 64;

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

void flag(ibv_send_wr& wr, ibv_send_flags bit) { wr.send_flags |= static_cast<unsigned>(bit); }

}  // namespace

StressEnd::StressEnd(const Setting& setting, QpPtr qp, EndMemory memory)
    : setting_(setting),
      qp_(std::move(qp)),
      memory_(memory),
      random_(mix64(setting.options->seed ^ mix64(setting.place.index))),
      peer_window_(setting.options->max_bytes, kPoison) {}

std::string StressEnd::oldest() const {
  if (in_flight_ == 0) return "nothing is in flight";
  const Request& request = requests_[(posted_ - in_flight_) % kSlots];
  char text[128];
  std::snprintf(text, sizeof text, "end %u: request %llu, opcode %d, %u bytes",
                setting_.place.index, static_cast<unsigned long long>(posted_ - in_flight_),
                request.opcode, request.bytes);
  return text;
}

void StressEnd::post() {
  if (in_flight_ == kSlots) return;
  const uint32_t max_bytes = setting_.options->max_bytes;
  switch (random_.between(0, 5)) {
    case 0:
    case 1:
      return post_message();
    case 2:
    case 3:
      return post_write();
    case 4: {
      const uint32_t bytes = random_.log_uniform(max_bytes);
      return post_read(random_.between32(0, max_bytes - bytes), bytes);
    }
    default:
      return post_atomic();
  }
}

void StressEnd::post_last_read() { post_read(0, setting_.options->max_bytes); }

// In the order of posting, which is also the order of completion.
Request& StressEnd::next_request() {
  Request& request = requests_[posted_ % kSlots];
  if (request.busy) fail("a slot is used twice");
  request.on_shared_word = false;
  return request;
}

void StressEnd::post_message() {
  std::atomic<uint64_t>& checked = setting_.board->messages_checked[setting_.place.index];
  if (messages_ >= checked.load(std::memory_order_acquire) + kLandings) return;
  const PlannedMessage message = planned_message(setting_.options->seed, setting_.place.index,
                                                 messages_, setting_.options->max_bytes);
  Request& request = next_request();
  request.bytes = message.bytes;
  request.pattern = message.pattern;
  write_pattern({memory_.slot(posted_ % kSlots), message.bytes}, message.pattern);
  ibv_send_wr wr{};
  wr.imm_data = message.immediate;
  switch (message.kind) {
    case MessageKind::kSend:
      wr.opcode = IBV_WR_SEND;
      break;
    case MessageKind::kSendWithImmediate:
      wr.opcode = IBV_WR_SEND_WITH_IMM;
      break;
    case MessageKind::kWriteWithImmediate:
      wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      wr.wr.rdma.remote_addr = memory_.at_peer(memory_.landing(messages_).data(), peer().memory);
      wr.wr.rdma.rkey = peer().rkey;
      break;
  }
  ++messages_;
  setting_.board->messages_sent[setting_.place.index].store(messages_, std::memory_order_release);
  submit(wr, message.bytes);
}

void StressEnd::post_write() {
  const uint32_t max_bytes = setting_.options->max_bytes;
  Request& request = next_request();
  request.bytes = random_.one_in(32) ? 0 : random_.log_uniform(max_bytes);
  request.pattern = random_.next();
  const uint32_t offset = random_.between32(0, max_bytes - request.bytes);
  std::byte* from = memory_.slot(posted_ % kSlots);
  write_pattern({from, request.bytes}, request.pattern);
  std::memcpy(peer_window_.data() + offset, from, request.bytes);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = memory_.at_peer(memory_.window() + offset, peer().memory);
  wr.wr.rdma.rkey = peer().rkey;
  // A READ that is asked for again is executed again (IBTA vol 1, 9.7.5.1.5), and must not find
  // what comes after it.
  if (reads_in_flight_ != 0) flag(wr, IBV_SEND_FENCE);
  submit(wr, request.bytes);
}

void StressEnd::post_read(uint32_t offset, uint32_t bytes) {
  Request& request = next_request();
  request.bytes = bytes;
  const auto from = peer_window_.begin() + offset;
  request.expected.assign(from, from + bytes);
  poison({memory_.slot(posted_ % kSlots), bytes + kGuardBytes});
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma.remote_addr = memory_.at_peer(memory_.window() + offset, peer().memory);
  wr.wr.rdma.rkey = peer().rkey;
  ++reads_in_flight_;
  submit(wr, bytes);
}

void StressEnd::post_atomic() {
  Request& request = next_request();
  request.bytes = 8;
  poison({memory_.slot(posted_ % kSlots), 8 + kGuardBytes});
  ibv_send_wr wr{};
  wr.wr.atomic.remote_addr = memory_.at_peer(memory_.word(), peer().memory);
  wr.wr.atomic.rkey = peer().rkey;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic.compare_add = random_.next();
  request.word = peer_word_;
  if (random_.one_in(3)) {
    request.on_shared_word = true;
    wr.wr.atomic.remote_addr = peer().shared_word;
    wr.wr.atomic.compare_add = 1;
    setting_.board->added[setting_.peer_process].fetch_add(1, std::memory_order_relaxed);
  } else if (random_.one_in(2)) {
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.swap = random_.next();
    if (random_.one_in(2)) wr.wr.atomic.compare_add = peer_word_;
    if (wr.wr.atomic.compare_add == peer_word_) peer_word_ = wr.wr.atomic.swap;
  } else {
    peer_word_ += wr.wr.atomic.compare_add;
  }
  submit(wr, 8);
}

void StressEnd::submit(ibv_send_wr& wr, uint32_t bytes) {
  const uint32_t slot = posted_ % kSlots;
  const uint64_t address = reinterpret_cast<uintptr_t>(memory_.slot(slot));
  const bool takes = wr.opcode == IBV_WR_RDMA_READ || is_atomic(wr.opcode);
  const uint32_t cut = is_atomic(wr.opcode) ? 8 : random_.between32(0, bytes);
  ibv_sge pieces[2] = {{address, cut, setting_.lkey}, {address + cut, bytes - cut, setting_.lkey}};
  wr.sg_list = pieces;
  wr.num_sge = bytes == 0 ? 0 : cut == bytes ? 1 : 2;
  wr.wr_id = setting_.wr_id_base + slot;
  flag(wr, IBV_SEND_SIGNALED);
  if (!takes && bytes <= kInlineBytes && random_.one_in(2)) flag(wr, IBV_SEND_INLINE);
  requests_[slot].opcode = wr.opcode;
  requests_[slot].busy = true;
  ++posted_;
  ++in_flight_;
  ibv_send_wr* bad = nullptr;
  must(ibv_post_send(qp_.get(), &wr, &bad), "ibv_post_send");
}

void StressEnd::on_request_completion(const ibv_wc& wc) {
  const auto slot = static_cast<uint32_t>(wc.wr_id - setting_.wr_id_base);
  if (wc.status != IBV_WC_SUCCESS) fail("%s: %s", oldest().c_str(), wc_text(wc).c_str());
  if (in_flight_ == 0 || slot != (posted_ - in_flight_) % kSlots) {
    fail("due is %s; came %s", oldest().c_str(), wc_text(wc).c_str());
  }
  check(requests_[slot], slot);
  requests_[slot].busy = false;
  --in_flight_;
  setting_.board->counts.operations.fetch_add(1, std::memory_order_relaxed);
  setting_.board->counts.bytes.fetch_add(requests_[slot].bytes, std::memory_order_relaxed);
}

void StressEnd::check(Request& request, uint32_t slot) {
  const std::byte* memory = memory_.slot(slot);
  if (is_atomic(request.opcode)) return check_atomic(request, slot);
  if (request.opcode == IBV_WR_RDMA_READ) {
    --reads_in_flight_;
    if (!std::equal(request.expected.begin(), request.expected.end(), memory)) {
      const auto wrong = std::mismatch(request.expected.begin(), request.expected.end(), memory);
      fail("%s: byte %td is %#x, must be %#x", oldest().c_str(),
           wrong.first - request.expected.begin(), std::to_integer<unsigned>(*wrong.second),
           std::to_integer<unsigned>(*wrong.first));
    }
    if (poison_difference({memory + request.bytes, kGuardBytes}) != kGuardBytes) {
      fail("%s: written to behind its end", oldest().c_str());
    }
  } else if (const size_t at = pattern_difference({memory, request.bytes}, request.pattern);
             at != request.bytes) {
    fail("%s: byte %zu of the source was changed", oldest().c_str(), at);
  }
}

void StressEnd::check_atomic(const Request& request, uint32_t slot) {
  uint64_t found = 0;
  std::memcpy(&found, memory_.slot(slot), 8);
  const auto shown = static_cast<unsigned long long>(found);
  if (poison_difference({memory_.slot(slot) + 8, kGuardBytes}) != kGuardBytes) {
    fail("%s: written to behind its end", oldest().c_str());
  }
  if (!request.on_shared_word) {
    if (found != request.word)
      fail("%s: found %#llx, not what was left there", oldest().c_str(), shown);
    return;
  }
  if (found + 1 <= seen_shared_word_)
    fail("%s: the shared word went back to %llu", oldest().c_str(), shown);
  seen_shared_word_ = found + 1;
}

void StressEnd::must_have_arrived(std::span<std::byte> buffer, uint32_t bytes,
                                  uint64_t pattern) const {
  const auto number = static_cast<unsigned long long>(received_);
  if (const size_t at = pattern_difference(buffer.first(bytes), pattern); at != bytes) {
    fail("end %u: message %llu of %u bytes: byte %zu is wrong", setting_.place.index, number, bytes,
         at);
  }
  const auto rest = buffer.subspan(bytes);
  if (const size_t at = poison_difference(rest); at != rest.size()) {
    fail("end %u: message %llu of %u bytes: written to %zu bytes behind its end",
         setting_.place.index, number, bytes, at);
  }
  poison(buffer.first(bytes));
}

void StressEnd::on_receive_completion(const ibv_wc& wc, std::span<std::byte> buffer) {
  const EndPlace& place = setting_.place;
  if (wc.status != IBV_WC_SUCCESS) fail("end %u: a receive: %s", place.index, wc_text(wc).c_str());
  if (received_ >= setting_.board->messages_sent[place.peer()].load(std::memory_order_acquire)) {
    fail("end %u: a message that was not sent: %s", place.index, wc_text(wc).c_str());
  }
  const PlannedMessage message =
      planned_message(setting_.options->seed, place.peer(), received_, setting_.options->max_bytes);
  const bool written = message.kind == MessageKind::kWriteWithImmediate;
  const bool has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (wc.opcode != (written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
      wc.byte_len != message.bytes || has_immediate != (message.kind != MessageKind::kSend) ||
      (has_immediate && wc.imm_data != message.immediate)) {
    fail("end %u: message %llu of %u bytes, kind %d: %s", place.index,
         static_cast<unsigned long long>(received_), message.bytes, static_cast<int>(message.kind),
         wc_text(wc).c_str());
  }
  if (written) must_have_arrived(memory_.landing(received_), message.bytes, message.pattern);
  must_have_arrived(buffer, written ? 0 : message.bytes, message.pattern);
  ++received_;
  setting_.board->messages_checked[place.peer()].store(received_, std::memory_order_release);
}

void StressEnd::check_guards() const {
  const std::span<const std::byte> window_guard{memory_.window() + setting_.options->max_bytes,
                                                kGuardBytes};
  const std::span<const std::byte> word_guard{memory_.word() + 8, kGuardBytes};
  for (const auto guard : {window_guard, word_guard}) {
    if (poison_difference(guard) != guard.size())
      fail("end %u: a guard was written to", setting_.place.index);
  }
  for (uint64_t i = 0; i < kLandings; ++i) {
    if (poison_difference(memory_.landing(i)) != memory_.landing(i).size()) {
      fail("end %u: a landing was written to without a message", setting_.place.index);
    }
  }
}

}  // namespace rocemu::e2e
