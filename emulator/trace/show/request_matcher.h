// Finds the request that a record speaks of. Part of story.cc.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "emulator/trace/show/story.h"

namespace rocemu::trace {

class RequestMatcher {
 public:
  explicit RequestMatcher(Story& story) : story_(story) {}

  // A record of posting, taking or completing; others are passed over. `qp`: kNowhere when the
  // record has none, as when a receive is posted to an SRQ.
  void take(At at, At qp);
  // All requests of the QP's send queue up to one have been answered.
  void on_acknowledged(At at, At qp);
  // The record names the request whose packet it is.
  void add_packet(const Record& record, At qp, At packet);

 private:
  enum class Side : uint8_t { sends, receives, shared_receives };
  // Device, QPN (0 for shared receives), side.
  using Queue = std::tuple<uint16_t, uint32_t, Side>;

  struct Known {
    std::map<uint32_t, At> by_number;
    std::vector<At> open;        // not polled yet, in the order of posting
    std::vector<At> unanswered;  // of a send queue
    size_t first_open = 0;
    size_t first_unanswered = 0;
  };
  // So many open requests are looked at for a wr_id.
  static constexpr size_t kMaxLookedAt = 1024;

  static Queue queue_of(const Record& record);
  static At& place_of(Request& request, Kind kind);
  Known& known(const Record& record) { return queues_[queue_of(record)]; }
  At find(Known& queue, const Record& record) const;
  At add(Known& queue, const Record& record, At qp);
  void drop_polled(Known& queue) const;

  Story& story_;
  std::map<Queue, Known> queues_;
};

}  // namespace rocemu::trace
