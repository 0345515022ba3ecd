// A Memory that hands everything on to another: decorators change what they are about.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "emulator/transport/interface/host_interface.h"

namespace rocemu::transport {

class PassingMemory : public Memory {
 public:
  explicit PassingMemory(std::shared_ptr<Memory> inner) : inner_(std::move(inner)) {}

  bool check_local(PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, MemoryRange& range) noexcept override {
    return inner_->check_local(pd, lkey, address, length_bytes, access, range);
  }
  bool check_remote(PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access, MemoryRange& range) noexcept override {
    return inner_->check_remote(pd, qpn, rkey, address, length_bytes, access, range);
  }
  bool grants_remote(PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                     uint32_t access) noexcept override {
    return inner_->grants_remote(pd, qpn, asked, access);
  }
  bool bind_window(PdHandle pd, wire::Qpn qpn, const WindowBinding& binding) noexcept override {
    return inner_->bind_window(pd, qpn, binding);
  }
  bool invalidate(PdHandle pd, wire::Qpn qpn, wire::RKey rkey) noexcept override {
    return inner_->invalidate(pd, qpn, rkey);
  }
  void fetch(const MemoryRange& range, std::byte* into, uint32_t length_bytes,
             uint32_t tag) noexcept override {
    inner_->fetch(range, into, length_bytes, tag);
  }
  void scatter(const MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override {
    inner_->scatter(range, from, length_bytes, tag);
  }
  // can_lend(), can_land() and land() are not handed on: whoever decorates moves wants to see
  // them.
  bool begin_lent(std::span<const std::byte> lent, std::byte* room) noexcept override {
    return inner_->begin_lent(lent, room);
  }
  void end_lent() noexcept override { inner_->end_lent(); }
  bool take_lent(std::span<const std::byte> lent, std::byte* into) noexcept override {
    return inner_->take_lent(lent, into);
  }
  void settle_fetches() noexcept override { inner_->settle_fetches(); }
  void flush_fetches(std::vector<uint32_t>& failed) noexcept override {
    inner_->flush_fetches(failed);
  }
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override {
    inner_->flush_scatters(failed);
  }
  bool compare_swap(const MemoryRange& range, uint64_t compare, uint64_t swap,
                    uint64_t& original) noexcept override {
    return inner_->compare_swap(range, compare, swap, original);
  }
  bool fetch_add(const MemoryRange& range, uint64_t add, uint64_t& original) noexcept override {
    return inner_->fetch_add(range, add, original);
  }

 protected:
  Memory& inner() { return *inner_; }

 private:
  std::shared_ptr<Memory> inner_;
};

}  // namespace rocemu::transport
