// A terminal as ncurses has it: lines out, keys in. While one lives the screen is its own; its end
// brings back what was there, however the program goes on.
#pragma once

#include <optional>
#include <vector>

#include "emulator/cli/top/screen.h"

namespace rocemu::cli::top {

class Terminal {
 public:
  // Throws Failure when standard input or output is no terminal, or one of an unknown kind.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Returns the size as it is now: users change it.
  Size size() const;
  void draw(const std::vector<Line>& lines);
  // Returns what was typed and not read yet; nothing when that is all.
  std::optional<Key> read_key();

 private:
  void* screen_;
};

}  // namespace rocemu::cli::top
