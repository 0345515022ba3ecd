// Decorators of a shaken device stand before these fakes in tests.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "emulator/device/interface/host_interface.h"
#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::shake::test {

inline constexpr uint32_t kFullStrength = 100;

inline Dice dice(uint64_t seed, uint32_t strength = kFullStrength) {
  static uint64_t done;
  return {seed, strength, done};
}

// 64 KiB of memory at kBase that notes each move in its order. Moves happen in the flush; those to
// the last page fail.
class FakeMemory final : public transport::Memory {
 public:
  static constexpr uint64_t kBase = 0x10000;
  static constexpr size_t kBytes = 65536;
  static constexpr uint64_t kBroken = kBase + kBytes - 4096;
  struct Move {
    uint64_t address;
    std::vector<std::byte> bytes;
    uint32_t tag;
  };

  bool check_local(transport::PdHandle, wire::LKey, uint64_t address, uint32_t, uint32_t,
                   transport::MemoryRange& range) noexcept override {
    range = {this, address};
    return true;
  }
  bool check_remote(transport::PdHandle, wire::Qpn, wire::RKey, uint64_t address, uint32_t,
                    uint32_t, transport::MemoryRange& range) noexcept override {
    range = {this, address};
    return true;
  }
  bool grants_remote(transport::PdHandle, wire::Qpn, const wire::Reth&,
                     uint32_t) noexcept override {
    return true;
  }
  bool bind_window(transport::PdHandle, wire::Qpn,
                   const transport::WindowBinding&) noexcept override {
    return true;
  }
  bool invalidate(transport::PdHandle, wire::Qpn, wire::RKey) noexcept override { return true; }
  void fetch(const transport::MemoryRange&, std::byte*, uint32_t, uint32_t) noexcept override {}
  void scatter(const transport::MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override {
    waiting.push_back({range.address, {from, from + length_bytes}, tag});
  }
  void flush_fetches(std::vector<uint32_t>&) noexcept override {}
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override {
    for (Move& move : waiting) {
      if (move.address >= kBroken) {
        failed.push_back(move.tag);
      } else {
        std::memcpy(bytes.data() + (move.address - kBase), move.bytes.data(), move.bytes.size());
      }
      moves.push_back(std::move(move));
    }
    waiting.clear();
  }
  bool compare_swap(const transport::MemoryRange&, uint64_t, uint64_t,
                    uint64_t&) noexcept override {
    waiting_at_atomic += waiting.size();
    return true;
  }
  bool fetch_add(const transport::MemoryRange&, uint64_t, uint64_t&) noexcept override {
    waiting_at_atomic += waiting.size();
    return true;
  }

  std::byte at(uint64_t address) const { return bytes[address - kBase]; }

  std::vector<std::byte> bytes = std::vector<std::byte>(kBytes);
  std::vector<Move> waiting;
  std::vector<Move> moves;
  size_t waiting_at_atomic = 0;
};

// A ring that shows what it has: `shown` is what the program sees.
class FakeRing final : public device::CompletionRing {
 public:
  struct State {
    std::vector<transport::Completion> shown;
    std::vector<transport::Completion> pushed;
    size_t room = 1000;
    bool armed = false;
  };
  explicit FakeRing(State& state) : state_(state) {}

  bool push(const transport::Completion& completion) noexcept override {
    if (state_.pushed.size() + state_.shown.size() >= state_.room) return false;
    state_.pushed.push_back(completion);
    return true;
  }
  bool show() noexcept override {
    const bool news = !state_.pushed.empty();
    state_.shown.insert(state_.shown.end(), state_.pushed.begin(), state_.pushed.end());
    state_.pushed.clear();
    return news && state_.armed;
  }
  bool take_arm() noexcept override { return std::exchange(state_.armed, false); }
  bool take_over(device::CompletionRing& old) noexcept override {
    state_.shown = static_cast<FakeRing&>(old).state_.shown;
    return true;
  }

 private:
  State& state_;
};

struct FakeOwner final : device::RingOwner {
  void show_soon() noexcept override { ++calls; }
  void lose_completion() noexcept override { ++lost; }
  unsigned calls = 0;
  unsigned lost = 0;
};

inline transport::Completion completion(uint32_t qpn, bool receive, uint64_t wr_id,
                                        transport::WcStatus status = transport::WcStatus::success) {
  transport::Completion made;
  made.qpn = wire::Qpn{qpn};
  made.opcode = receive ? transport::WcOpcode::receive : transport::WcOpcode::send;
  made.wr_id = wr_id;
  made.status = status;
  return made;
}

}  // namespace rocemu::shake::test
