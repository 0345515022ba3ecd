// A port of the in-process switch. The two directions of its link are transmit(), for what leaves
// the device, and enqueue(), for what the switch sends to it.
#pragma once

#include <rte_mbuf.h>

#include <span>
#include <string>
#include <utility>

#include "dpdk_io/port/frame_queue.h"
#include "dpdk_io/port/run_mark.h"
#include "dpdk_io/switch/switch.h"
#include "network/impaired_link.h"
#include "network/mac.h"

namespace rocemu::dpdk_io {

inline bool well_formed(const rte_mbuf* frame) {
  return frame->nb_segs == 1 && frame->data_len >= network::kEthernetHeaderBytes;
}

class SwitchPort final : public LinkedPort {
 public:
  SwitchPort(Switch& owner, unsigned number, std::string name, unsigned queue_frames)
      : links(number),
        number_(number),
        switch_(owner),
        name_(std::move(name)),
        queue_(queue_frames) {}

  network::PortLinks links;

  const std::string& name() const { return name_; }
  unsigned number() const { return number_; }

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override {
    if (next_arrival_ns() <= now_ns) [[unlikely]]
      switch_.advance(now_ns);
    burst = burst.first(queue_.pop(burst));
    if (single_frames_wanted_ != 0) [[unlikely]]
      burst = drop_runs(burst);
    count(burst, stats_.rx_frames, stats_.rx_bytes);
    return static_cast<unsigned>(burst.size());
  }

  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override {
    if (switch_.holds_) burst = hold(burst);
    count(burst, stats_.tx_frames, stats_.tx_bytes);
    if (!switch_.holds_) switch_.carry(*this, now_ns, burst);
    return static_cast<unsigned>(burst.size());
  }

  // Fills `frames`, which is Switch::kMaxHeld long, and returns the part that it has filled.
  std::span<rte_mbuf*> take_held(std::span<rte_mbuf*> frames) noexcept {
    return frames.first(held_.pop(frames));
  }

  void enqueue(rte_mbuf* frame) noexcept {
    if (!queue_.push(frame)) drop(frame, DropReason::queue_full);
  }

  // See Switch::take_lent(). Precondition: the switch holds nothing.
  void take_lent() noexcept {
    queue_.keep_if([this](rte_mbuf* frame) {
      const bool taken = dpdk_io::take_lent(frame, switch_.take_lent_);
      if (!taken) drop(frame, DropReason::malformed);
      return taken;
    });
  }

  // Returns what is left.
  std::span<rte_mbuf*> drop_runs(std::span<rte_mbuf*> burst) noexcept {
    size_t kept = 0;
    for (rte_mbuf* frame : burst) {
      if (is_run(frame)) {
        drop(frame, DropReason::malformed);
      } else {
        burst[kept++] = frame;
      }
    }
    return burst.first(kept);
  }

  void drop(rte_mbuf* frame, DropReason reason) noexcept {
    stats_.dropped(reason) += counted_packets(frame);
    tell_loss(frame, reason);
    FramePool::free(frame);
  }

  bool storm(uint64_t now_ns, bool received, bool sent) noexcept override {
    return switch_.storm(*this, now_ns, received, sent);
  }
  int poll_fd() const noexcept override { return -1; }
  bool takes_owed_icrc() const noexcept override { return switch_.icrc_can_wait(); }
  FramePool* run_pool() const noexcept override {
    return switch_.runs_can_pass() ? switch_.run_pool_ : nullptr;
  }
  bool takes_lent() const noexcept override { return switch_.take_lent_ != nullptr; }
  uint64_t landing_epoch() const noexcept override { return switch_.landing_epoch_; }
  void want_single_frames(bool wanted) noexcept override {
    const unsigned one_more = wanted ? 1 : -1u;
    single_frames_wanted_ += one_more;
    switch_.single_frames_wanted_.fetch_add(one_more, std::memory_order_relaxed);
  }
  bool has_work() const noexcept override { return !queue_.empty(); }
  uint64_t next_arrival_ns() const noexcept override { return switch_.next_arrival_ns_; }
  const PortStats& stats() const noexcept override { return stats_; }

  void set_link(impairment::Direction direction, const impairment::Spec& spec) override {
    switch_.set_link(*this, direction, spec);
  }
  network::LinkReport link(impairment::Direction direction) const override {
    return links.report(direction);
  }

 private:
  static void count(std::span<rte_mbuf* const> frames, uint64_t& packets, uint64_t& bytes) {
    uint64_t more_packets = 0;
    uint64_t more_bytes = 0;
    for (const rte_mbuf* frame : frames) {
      more_packets += counted_packets(frame);
      more_bytes += counted_bytes(frame);
    }
    packets += more_packets;
    bytes += more_bytes;
  }

  // Returns the part that found room.
  std::span<rte_mbuf*> hold(std::span<rte_mbuf*> burst) noexcept {
    size_t count = 0;
    while (count < burst.size() && held_.push(burst[count])) ++count;
    return burst.first(count);
  }

  unsigned number_;
  Switch& switch_;
  std::string name_;
  FrameQueue queue_;
  FrameQueue held_{Switch::kMaxHeld};
  PortStats stats_;
  unsigned single_frames_wanted_ = 0;  // of this port, by so many
};

}  // namespace rocemu::dpdk_io
