#include "emulator/experiment/command/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace rocemu::experiment {

namespace {

constexpr std::chrono::milliseconds kBetween{200};
constexpr unsigned kWidth = 30;

}  // namespace

Progress::Progress(bool wanted) : wanted_(wanted && ::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(uint64_t done, uint64_t all, const std::string& text) {
  if (!wanted_) return;
  const Clock::time_point now = Clock::now();
  if (shown_ && now - last_ < kBetween) return;
  last_ = now;
  shown_ = true;
  const uint64_t part = all == 0 ? 0 : std::min(done, all) * kWidth / all;
  std::string bar(part, '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "\r[%s] %s\x1b[K", bar.c_str(), text.c_str());
}

}  // namespace rocemu::experiment
