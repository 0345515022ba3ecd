// A shared receive queue of the device: the receives that its QPs take, and the limit below which
// its owner wants to hear of it (IBTA vol 1, 10.2.9; ibv_create_srq(3), ibv_modify_srq(3)).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/device/interface/host_interface.h"
#include "emulator/device/interface/specs.h"
#include "emulator/device/objects/cq.h"
#include "emulator/device/objects/tag_list.h"

namespace rocemu::device {

struct Context;
struct OpenXrcd;
struct Pd;
struct Xrcd;

class Srq final : public transport::ReceiveQueue {
 public:
  // `at_limit` is the device's list of SRQs whose owners are to be told.
  Srq(Context& context, Pd& pd, const SrqSpec& spec, std::unique_ptr<ReceiveRing> ring,
      std::vector<Srq*>& at_limit)
      : context_(context), pd_(pd), spec_(spec), ring_(std::move(ring)), at_limit_(at_limit) {}

  bool pop(transport::ReceiveWork& work) noexcept override {
    if (!ring_->pop(work)) return false;
    if (limit_ != 0) [[unlikely]]
      check_limit();
    return true;
  }

  uint32_t waiting() const noexcept override { return ring_->waiting(); }

  // Arms the event once; 0 disarms it.
  void arm(uint32_t limit) {
    limit_ = limit;
    if (limit_ != 0) check_limit();
  }
  uint32_t limit() const { return limit_; }

  // Does a part of replacing it; false when another is to be done so before.
  bool prepare_ring(ReceiveRing& ring) { return ring.prepare_to_take_over(*ring_); }
  // False when `ring`, for `max_wr`, does not hold what waits, and stays the caller's.
  bool replace_ring(std::unique_ptr<ReceiveRing>& ring, uint32_t max_wr) {
    if (!ring->take_over(*ring_)) return false;
    ring_ = std::move(ring);
    spec_.max_wr = max_wr;
    return true;
  }

  Context& context() const { return context_; }
  Pd& pd() const { return pd_; }
  const SrqSpec& spec() const { return spec_; }

  uint32_t users = 0;  // QPs that were made with it
  uint32_t async_events_written = 0;
  Cq* cq = nullptr;               // XRC and tag matching
  std::unique_ptr<TagList> tags;  // tag matching alone
  // XRC alone
  std::shared_ptr<Xrcd> domain;
  OpenXrcd* xrcd = nullptr;
  wire::Qpn number{};

 private:
  void check_limit() {
    if (ring_->waiting() >= limit_) return;
    limit_ = 0;
    at_limit_.push_back(this);
  }

  Context& context_;
  Pd& pd_;
  SrqSpec spec_;
  std::unique_ptr<ReceiveRing> ring_;
  uint32_t limit_ = 0;
  std::vector<Srq*>& at_limit_;
};

}  // namespace rocemu::device
