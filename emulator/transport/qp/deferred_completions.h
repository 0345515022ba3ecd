// Ties completions to the data they announce. Scatters are only collected while a burst of frames
// is handled; the completions that depend on them wait here until all have been moved. When a move
// fails, the completion that would have announced it is turned into an error and what the same side
// of the same QP completed after it is flushed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/interface/observer.h"
#include "emulator/transport/qp/tally.h"

namespace rocemu::transport {

class Qp;

// A scatter moves data of our own request, of a receive, or of a peer's WRITE. Those ahead move
// what no completion announces yet, of packets whose turn has not come.
enum class ScatterKind : uint8_t { read_response, receive, remote_write, ahead, response_ahead };

// The side of a QP that completes: both kinds of responder scatters belong to one.
enum class Side : uint8_t { requester, responder };

constexpr Side side_of(ScatterKind kind) {
  return kind == ScatterKind::read_response || kind == ScatterKind::response_ahead
             ? Side::requester
             : Side::responder;
}

// Counts a completion that a program is shown with an error, once its status cannot change any
// more.
void note_failed_completion(QpTally& tally, Side side, WcStatus status);

class DeferredCompletions {
 public:
  // The tag for a scatter that is about to be collected.
  uint32_t note_scatter(Qp& qp, ScatterKind kind, wire::Psn psn) {
    scatters_.push_back({&qp, psn, kind});
    return static_cast<uint32_t>(scatters_.size() - 1);
  }
  // A copy of some bytes for a scatter that is about to be collected, as long as that needs it.
  // Precondition: kMaxKeptBytes at most.
  static constexpr size_t kMaxKeptBytes = 16;
  std::span<const std::byte> keep(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, kept_.emplace_back().begin());
    return std::span(kept_.back()).first(bytes.size());
  }
  // A completion for the caller to fill in; the reference is good until the next call. `announce`
  // false: a success that the program did not ask to hear of; it is pushed only when its data could
  // not be moved.
  Completion& complete(Qp& qp, Side side, CompletionQueue& queue, bool announce = true) {
    Pending& pending = pending_.emplace_back();
    pending.qp = &qp;
    pending.queue = &queue;
    pending.scatters_before = static_cast<uint32_t>(scatters_.size());
    pending.side = side;
    pending.announce = announce;
    return pending.completion;
  }
  // True when a QP in ERROR whose program rings may be flushed now, and not in a later turn:
  // programs have as many QPs as they like, and ring for all at once.
  bool may_flush_now() { return flushed_now_ < kFlushedNow && ++flushed_now_ != 0; }
  // Notes that the QP's queues are to be flushed further, when other QPs have had their turn.
  void flush_later(Qp& qp);
  // Begins a turn and returns the QP to flush in it; null when none waits.
  Qp* take_to_flush();
  bool flushes_wait() const { return !to_flush_.empty(); }

  // True when a request has failed since the last call: its memory is the program's again, though
  // packets with it may be under way, of which no answer tells.
  bool take_given_back() { return std::exchange(gives_back_, false); }

  // It is told of each completion; nullptr: nobody is.
  void set_observer(Observer* observer) { observer_ = observer; }

  bool idle() const { return scatters_.empty() && pending_.empty(); }

  // Moves the data, lets QPs whose data could not be moved fail, and pushes the completions.
  void flush(Memory& memory);

  // The QP goes away without completing anything more.
  void forget(Qp& qp);

 private:
  struct Scatter {
    Qp* qp;
    wire::Psn psn;
    ScatterKind kind;
  };
  struct Pending {
    Qp* qp = nullptr;
    CompletionQueue* queue = nullptr;
    uint32_t scatters_before = 0;
    Side side{};
    bool announce = true;
    Completion completion;
  };
  void fail(uint32_t tag);
  void tell_placed() const;

  Observer* observer_ = nullptr;
  std::vector<Scatter> scatters_;
  std::deque<std::array<std::byte, kMaxKeptBytes>> kept_;  // they stay where they are
  std::vector<Pending> pending_;
  std::vector<uint32_t> failed_;
  bool gives_back_ = false;
  static constexpr unsigned kFlushedNow = 4;
  unsigned flushed_now_ = 0;  // QPs since the last turn began
  std::deque<Qp*> to_flush_;
};

}  // namespace rocemu::transport
