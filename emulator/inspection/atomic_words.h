// Values that atomics of the device left in memory. An atomic that finds another value there,
// though it had been taken off its queue before the one that left it and nothing of the NIC wrote
// there meanwhile, proves that the processor, or another device, changed the word while it was
// under way. Atomicity holds among one device's operations alone where the device says
// IBV_ATOMIC_HCA (ibv_query_device(3); IBTA vol 1, 9.4.5).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/inspection/step.h"

namespace rocemu::inspection {

class AtomicWords {
 public:
  static constexpr size_t kWords = 1024;  // two that fall on one place: the later one is kept

  // The word held `before` and now holds `after`. Answers the value that was left there, when
  // something changed it in the way above. `taken`: 0 when it is not known.
  std::optional<uint64_t> on_atomic(const void* space, uint64_t address, uint64_t before,
                                    uint64_t after, Step taken, Step now) {
    if (words_.empty()) words_.resize(kWords);
    Word& word = place_of(space, address);
    const bool changed = word.space == space && word.address == address && word.epoch == epoch_ &&
                         word.value != before && taken != 0 && taken < word.at;
    const std::optional<uint64_t> left = changed ? std::optional(word.value) : std::nullopt;
    word = {space, address, after, now, epoch_};
    return left;
  }

  // The NIC writes, or may write, these bytes.
  void on_write(const void* space, uint64_t address, uint64_t length_bytes) {
    if (words_.empty() || length_bytes == 0) return;
    if (length_bytes > kMaxBytes) {
      ++epoch_;
      return;
    }
    // Counted, since the last byte may be the last one of the address space.
    const uint64_t words = (address % kWordBytes + length_bytes + kWordBytes - 1) / kWordBytes;
    for (uint64_t i = 0, at = address - address % kWordBytes; i < words; ++i, at += kWordBytes)
      if (Word& word = place_of(space, at); word.space == space && word.address == at) word = {};
  }

 private:
  static constexpr uint64_t kWordBytes = 8;
  static constexpr uint64_t kMaxBytes = 512;  // longer writes have all words forgotten

  struct Word {
    const void* space = nullptr;
    uint64_t address = 0;
    uint64_t value = 0;
    Step at = 0;
    uint64_t epoch = 0;
  };
  Word& place_of(const void* space, uint64_t address) {
    const uint64_t mixed = (address ^ reinterpret_cast<uintptr_t>(space)) * 0x9e3779b97f4a7c15u;
    return words_[mixed >> 54];
  }

  std::vector<Word> words_;  // none until there is an atomic
  uint64_t epoch_ = 1;
};

}  // namespace rocemu::inspection
