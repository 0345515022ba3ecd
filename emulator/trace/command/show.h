// `rocemu trace show` and `rocemu trace why`: what a trace's file tells. Both return the exit code
// and throw cli::Failure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace rocemu::trace {

struct ShowOptions {
  std::filesystem::path file;
  std::string format = "text";
  uint32_t qpn = 0;           // 0: all
  std::string device;         // a name; empty: all
  std::string program;        // a name or a pid; empty: all
  std::filesystem::path out;  // empty: standard output
};

// `words` behind "show" or, which has no format, "why".
ShowOptions parse_show(std::span<const std::string> words, bool is_why = false);

int show(std::span<const std::string> words);
int why(std::span<const std::string> words);

}  // namespace rocemu::trace
