// EnginePage is the memory in which the engine tells all programs how it is (rocemu_engine_page of
// verbs_shim/abi/rings.h). Programs can only read it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/unique_fd.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/daemon/rings/shared_words.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {

class EnginePage {
 public:
  EnginePage();  // throws std::system_error

  // The descriptor that programs map.
  int fd() const { return fd_.get(); }

  // Any thread may ask; the answer is ordered against what it wrote before (load_seq_cst).
  bool shows_sleeping() const noexcept {
    return (load_seq_cst(page_.sleeping) & ROCEMU_ENGINE_SLEEPS) != 0;
  }

  // The rest belongs to whoever holds the EngineLock.
  void show_sleeping() noexcept {
    store_seq_cst(page_.sleeping, ROCEMU_ENGINE_SLEEPS | attention_);
  }
  void show_awake() noexcept { store_release(page_.sleeping, attention_); }
  // Programs that post are to ask (rings.h), or need not any more.
  void show_attention(bool wanted) noexcept {
    attention_ = wanted ? uint32_t{ROCEMU_ENGINE_WANTS_ATTENTION} : 0;
    store_seq_cst(page_.sleeping, (page_.sleeping & ROCEMU_ENGINE_SLEEPS) | attention_);
  }
  // `number` is the system's number plus 1, as in rings.h.
  void show_cpu(uint32_t number) noexcept { store_release(page_.core, number); }
  // Programs yield more often while the engine's threads take all CPUs there are.
  void show_crowded(bool crowded) noexcept {
    if (std::exchange(shows_crowded_, crowded) != crowded)
      store_release(page_.crowded, uint32_t{crowded});
  }

  // After each turn. `behind`: there has been work for a while without a pause (IdlePolicy).
  void show_turn(bool behind) noexcept {
    if (!behind && turn_behind_ == 0) return;
    turn_behind_ = behind ? std::max(turn_behind_ + 1, uint32_t{1}) : 0;
    store_release(page_.turn_behind, turn_behind_);
  }

 private:
  SharedMemory memory_;
  rocemu_engine_page& page_;
  UniqueFd fd_;
  uint32_t attention_ = 0;
  bool shows_crowded_ = false;
  uint32_t turn_behind_ = 0;
};

}  // namespace rocemu::daemon
