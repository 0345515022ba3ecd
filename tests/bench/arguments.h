// The command line of a measuring program. CLI11 is behind it, which takes longer to compile than
// what is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace rocemu::bench {

class Arguments {
 public:
  explicit Arguments(const char* about);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // What is not given keeps its value.
  void flag(const char* name, bool& value, const char* help);
  void text(const char* name, std::string& value, const char* help);
  void index(const char* name, int& value, const char* help);  // 0 and on
  // From 1 to `most`.
  void count(const char* name, uint32_t& value, const char* help, uint32_t most = UINT32_MAX);
  void count(const char* name, uint64_t& value, const char* help, uint64_t most = UINT64_MAX);
  void seconds(double& value);  // --seconds, more than 0

  // An exit code: help was asked for, and is printed, or something is wrong, and is said.
  std::optional<int> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace rocemu::bench
