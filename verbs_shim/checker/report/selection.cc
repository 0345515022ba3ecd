#include "verbs_shim/checker/report/selection.h"

#include <algorithm>

#include "verbs_shim/abi/check_names.h"

namespace rocemu::check {

Selection::Selection(std::string_view text) {
  const auto add_all = [this] { on_.insert(kCheckNames.begin(), kCheckNames.end()); };
  if (text.empty() || text == "1" || text.starts_with('-')) add_all();
  if (text == "1") return;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool out = word.starts_with('-');
    if (out) word.remove_prefix(1);
    if (word == "all") {
      if (out)
        on_.clear();
      else
        add_all();
    } else if (!is_check_name(word)) {
      if (unknown.empty() && !word.empty()) unknown = word;
    } else if (out) {
      on_.erase(std::string(word));
    } else {
      on_.insert(std::string(word));
    }
  }
}

}  // namespace rocemu::check
