#include "emulator/cli/findings/check_options.h"

#include <sstream>

#include "verbs_shim/abi/check_names.h"

namespace rocemu::cli {

std::string unknown_check(const std::string& names) {
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    if (word.starts_with('-')) word.erase(0, 1);
    if (word != "all" && !is_check_name(word)) return word;
  }
  return {};
}

}  // namespace rocemu::cli
