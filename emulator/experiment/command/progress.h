// A line on the terminal that says how far it is. Nothing where stderr is none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rocemu::experiment {

class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `all`, and what else there is to say; written some times a second at most.
  void show(uint64_t done, uint64_t all, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_ = false;
  bool wanted_;
  Clock::time_point last_{};
};

}  // namespace rocemu::experiment
