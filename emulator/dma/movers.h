// Movers are threads that share the moves of a flush with the one that makes it (Batch::flush()).
#pragma once

#include <functional>

namespace rocemu::dma {

class Movers {
 public:
  virtual ~Movers() = default;

  // Calls job(n) once for each n below `jobs`, on this thread and on others, if that is to be. All
  // have returned when this returns.
  virtual void run(unsigned jobs, const std::function<void(unsigned)>& job) noexcept = 0;
};

// As long as it lives, these movers have a part in what this thread flushes; nullptr: none have.
class SharedMoves {
 public:
  explicit SharedMoves(Movers* movers) noexcept : before_(current_) { current_ = movers; }
  ~SharedMoves() { current_ = before_; }
  SharedMoves(const SharedMoves&) = delete;
  SharedMoves& operator=(const SharedMoves&) = delete;

  static Movers* of_this_thread() noexcept { return current_; }

 private:
  static inline thread_local Movers* current_ = nullptr;
  Movers* before_;
};

}  // namespace rocemu::dma
