// The choice of detectors, as text: "all", "leaks,fork", "all,-leaks", "-leaks".
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace rocemu::check {

class Selection {
 public:
  // `text` as above; empty and "1" are "all". A list that begins with a name taken out begins with
  // all. An unknown name changes nothing; the first is kept in `unknown`.
  explicit Selection(std::string_view text);

  bool has(std::string_view name) const { return on_.contains(std::string(name)); }

  std::string unknown;  // the first one, or empty

 private:
  std::set<std::string> on_;
};

}  // namespace rocemu::check
