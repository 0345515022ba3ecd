// Posted receives and the buffers of READs are scribbled on before their data comes: what such a
// buffer holds is nobody's until its completion (IBTA vol 1, 10.7.3.1 and 11.4.1.1;
// ibv_post_recv(3)). A READ's buffer is scribbled on when the READ is sent, long before, on its
// first 64 KiB; a receive's just before the data, as far as the data reaches.
//
// Guarantees:
// - Bytes that the message does not bring keep what they hold.
// - Nothing is scribbled on what a peer writes to by RDMA, nor behind a completion.
// - A READ's buffer from which the NIC has ever sent is not touched before its data: a SEND before
//   it may be sent again from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/passing_memory.h"

namespace rocemu::shake {

class Scribble final : public transport::PassingMemory {
 public:
  Scribble(std::shared_ptr<transport::Memory> inner, Dice dice)
      : transport::PassingMemory(std::move(inner)), dice_(dice) {
    for (std::byte& byte : garbage_) byte = static_cast<std::byte>(dice_.next());
  }

  bool check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, transport::MemoryRange& range) noexcept override;
  bool check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access,
                    transport::MemoryRange& range) noexcept override;
  void fetch(const transport::MemoryRange& range, std::byte* into, uint32_t length_bytes,
             uint32_t tag) noexcept override;
  void scatter(const transport::MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override;
  void flush_fetches(std::vector<uint32_t>& failed) noexcept override;
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override;

 private:
  // Memory of a program that was found to be writable for a request of its own.
  struct Target {
    transport::MemoryRange range;
    uint32_t length_bytes;
  };

  void scribble_on_target() noexcept;
  void add_garbage(const Target& target);
  void flush_inner(std::vector<uint32_t>& failed) noexcept;
  bool was_sent_from(const Target& target) const;

  Dice dice_;
  std::array<std::byte, 4096> garbage_;
  std::optional<Target> target_;          // target of the last call, if that was a check
  std::unordered_set<uint64_t> sources_;  // pages that were sent from
  std::vector<uint32_t> failed_early_;    // tags of what was flushed before the transport asked
};

}  // namespace rocemu::shake
