#include "emulator/cli/findings/check_options.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "verbs_shim/abi/check_names.h"

namespace rocemu::cli {

std::string unknown_check(const std::string& names) {
  static constexpr auto kNames = std::to_array<std::string_view>({ROCEMU_CHECK_NAMES});
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    if (word.starts_with('-')) word.erase(0, 1);
    if (word != "all" && std::ranges::find(kNames, word) == kNames.end()) return word;
  }
  return {};
}

}  // namespace rocemu::cli
