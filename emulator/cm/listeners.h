// Listeners keeps the ids that listen at each service, and the clients that nobody listened to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "emulator/cm/listen_gaps.h"
#include "emulator/cm/types.h"

namespace rocemu::cm {

class Listeners {
 public:
  // The number of requests that were refused since this program last listened there (ListenGaps).
  uint32_t add(ProgramId program, uint64_t service, IdHandle id) {
    at_.emplace(service, id);
    return gaps_.close(program, service);
  }
  void remove(ProgramId program, uint64_t service, IdHandle id, const Clients& clients) {
    gaps_.open(program, service, clients);
    const auto [first, last] = at_.equal_range(service);
    const auto entry = std::find_if(first, last, [&](const auto& at) { return at.second == id; });
    if (entry != last) at_.erase(entry);
  }
  // The listeners as pairs, whose second is an id.
  auto at(uint64_t service) const { return at_.equal_range(service); }
  // A request found no listener.
  void refused(uint64_t service, const wire::Gid& client) { gaps_.refused(service, client); }

 private:
  std::multimap<uint64_t, IdHandle> at_;
  ListenGaps gaps_;
};

}  // namespace rocemu::cm
