// NeighbourCache knows who on the link has which address. It holds nothing but what was asked for:
// what others send of their own accord changes entries and makes none, so that a flood cannot fill
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/net/ip_address.h"
#include "base/net/mac_address.h"
#include "base/time.h"

namespace rocemu::dpdk_io {

class NeighbourCache {
 public:
  static constexpr size_t kMaxKnown = 4096;
  static constexpr size_t kMaxAsked = 256;              // at a time
  static constexpr TimeNs kValidNs = 60'000'000'000;    // then it is asked for again
  static constexpr TimeNs kAskAgainNs = 1'000'000'000;  // as Linux does, and so often
  static constexpr unsigned kQuestions = 3;

  struct LookUp {
    std::optional<MacAddress> mac;  // empty: not known (yet)
    bool ask = false;               // the question has to be sent now
  };
  // Begins to ask when nothing valid is there.
  LookUp look_up(TimeNs now, const IpAddress& address);

  // `address` has spoken, and it is at `mac`. An address that is neither known nor asked for is
  // forgotten at once. Without `replacing` another MAC than the known one is not believed.
  void learn(TimeNs now, const IpAddress& address, const MacAddress& mac, bool replacing = true);

  // All have to be asked for anew. Questions that are open stay so.
  void forget_known() noexcept { known_.clear(); }

  // The addresses whose questions have to be sent again. Addresses that were asked for often enough
  // are given up.
  std::vector<IpAddress> due(TimeNs now);
  TimeNs next_deadline() const noexcept { return next_ask_; }

  size_t known() const noexcept { return known_.size(); }
  size_t asked() const noexcept { return asked_.size(); }

 private:
  struct Known {
    MacAddress mac;
    TimeNs heard_at;
  };
  struct Asked {
    TimeNs again_at;
    unsigned questions = 1;
  };

  void make_room(TimeNs now);

  std::map<IpAddress, Known> known_;
  std::map<IpAddress, Asked> asked_;
  TimeNs next_ask_ = kNever;
};

}  // namespace rocemu::dpdk_io
