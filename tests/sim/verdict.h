// The first thing that went wrong in a scenario. Checks run where nothing may be thrown, so that a
// failure is kept and the run ends at the next opportunity.
#pragma once

#include <string>

namespace rocemu::sim_scenarios {

class Verdict {
 public:
  bool ok() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  void fail(std::string text) {
    if (ok()) text_ = std::move(text);
  }
  // True when `condition` holds.
  bool check(bool condition, const char* text) {
    if (!condition) fail(text);
    return condition;
  }

 private:
  std::string text_;
};

}  // namespace rocemu::sim_scenarios
