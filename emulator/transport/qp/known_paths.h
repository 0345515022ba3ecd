// KnownPaths finds what QPs of one endpoint know of a path together: there is one between each pair
// of GIDs, as long as a QP holds it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "emulator/congestion/path_round_trips.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class KnownPaths {
 public:
  std::shared_ptr<congestion::PathRoundTrips> between(const wire::Gid& local,
                                                      const wire::Gid& remote) {
    std::weak_ptr<congestion::PathRoundTrips>& known = paths_[{local, remote}];
    std::shared_ptr<congestion::PathRoundTrips> path = known.lock();
    if (path == nullptr) {
      path = std::make_shared<congestion::PathRoundTrips>();
      known = path;
    }
    if (paths_.size() >= clean_at_) clean();
    return path;
  }

 private:
  static constexpr size_t kFew = 16;

  void clean() {
    std::erase_if(paths_, [](const auto& known) { return known.second.expired(); });
    clean_at_ = std::max(kFew, 2 * paths_.size());
  }

  std::map<std::pair<wire::Gid, wire::Gid>, std::weak_ptr<congestion::PathRoundTrips>> paths_;
  size_t clean_at_ = kFew;
};

}  // namespace rocemu::transport
