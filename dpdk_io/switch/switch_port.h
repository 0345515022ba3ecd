// A port of the in-process switch. The two directions of its link are transmit(), for what leaves
// the device, and enqueue(), for what the switch sends to it.
#pragma once

#include <rte_mbuf.h>

#include <span>
#include <string>
#include <utility>

#include "dpdk_io/port/frame_queue.h"
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
    const unsigned count = queue_.pop(burst);
    uint64_t bytes = 0;
    for (const rte_mbuf* frame : burst.first(count)) bytes += frame->pkt_len;
    stats_.rx_frames += count;
    stats_.rx_bytes += bytes;
    return count;
  }

  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override {
    if (switch_.holds_) burst = hold(burst);
    uint64_t bytes = 0;
    for (const rte_mbuf* frame : burst) bytes += frame->pkt_len;
    stats_.tx_frames += burst.size();
    stats_.tx_bytes += bytes;
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

  void drop(rte_mbuf* frame, DropReason reason) noexcept {
    ++stats_.dropped(reason);
    tell_loss(frame, reason);
    FramePool::free(frame);
  }

  bool storm(uint64_t now_ns, bool received, bool sent) noexcept override {
    return switch_.storm(*this, now_ns, received, sent);
  }
  int poll_fd() const noexcept override { return -1; }
  bool takes_owed_icrc() const noexcept override { return switch_.icrc_can_wait(); }
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
};

}  // namespace rocemu::dpdk_io
