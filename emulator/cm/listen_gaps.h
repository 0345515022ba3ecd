// Clients that were refused between two times that a program listened at one port: a server that
// gives up its listener and makes another for the same client's next connection refuses a client
// that is quick. Kept for the checker; so little that nobody asks whether there is one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "emulator/wire/types.h"

namespace rocemu::cm {

// The addresses of a listener's last clients.
class Clients {
 public:
  void add(const wire::Gid& client) {
    if (has(client)) return;
    clients_[next_++ % clients_.size()] = client;
    count_ = std::min(count_ + 1, clients_.size());
  }
  bool has(const wire::Gid& client) const {
    return std::find(clients_.begin(), clients_.begin() + count_, client) !=
           clients_.begin() + count_;
  }

 private:
  std::array<wire::Gid, 4> clients_{};
  size_t count_ = 0;
  size_t next_ = 0;
};

class ListenGaps {
 public:
  // A program's listener goes, which had these clients.
  void open(uint64_t program, uint64_t service, const Clients& clients) {
    if (gaps_.size() == kMax) gaps_.pop_front();
    gaps_.push_back({program, service, clients, 0});
  }
  // A request found no listener.
  void refused(uint64_t service, const wire::Gid& client) {
    for (Gap& gap : gaps_)
      if (gap.service == service && gap.clients.has(client)) ++gap.refused;
  }
  // The program listens there again. Returns how many of those clients' requests were refused.
  uint32_t close(uint64_t program, uint64_t service) {
    uint32_t refused = 0;
    std::erase_if(gaps_, [&](const Gap& gap) {
      if (gap.program != program || gap.service != service) return false;
      refused += gap.refused;
      return true;
    });
    return refused;
  }

 private:
  static constexpr size_t kMax = 64;  // then the oldest is forgotten
  struct Gap {
    uint64_t program = 0;
    uint64_t service = 0;
    Clients clients;
    uint32_t refused = 0;
  };
  std::deque<Gap> gaps_;
};

}  // namespace rocemu::cm
