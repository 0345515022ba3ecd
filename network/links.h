// The links between a switch and its ports: takes a frame over one of them, as its impairments
// want, at once or later. Frames under way are bounded; what is more is lost.
#pragma once

#include <cstddef>
#include <utility>

#include "base/time.h"
#include "impairment/assignment.h"
#include "impairment/link.h"
#include "network/due_queue.h"
#include "network/impaired_link.h"

namespace rocemu::network {

// Calls arrive(arrival, frame) for each arrival of `fate`, of which there must be one, with the
// frame as it is then: corrupted ones have bytes of their own. Calls lose(frame) where there is no
// buffer for these.
template <class Frames, class Arrive, class Lose>
void each_arrival(const impairment::Fate& fate, const typename Frames::Frame& frame,
                  Arrive&& arrive, Lose&& lose) {
  if (fate.arrival_count > 1) Frames::share(frame, static_cast<unsigned>(fate.arrival_count - 1));
  for (const impairment::Arrival& arrival : fate.view()) {
    typename Frames::Frame arriving = frame;
    if (arrival.corrupted && !Frames::corrupt(arriving, arrival)) {
      lose(std::move(arriving));
    } else {
      arrive(arrival, std::move(arriving));
    }
  }
}

// `Frames` says what a frame is (network/README.md). A `Port` has a PortLinks called `links`. The
// owner has, called for frames that have come to the end of a link, or never will:
//   void arrive(Port&, impairment::Direction, TimeNs at, Frame)
//   void lose(Port&, impairment::Direction, impairment::Loss, Frame)
template <class Frames, class Port, class Owner>
class Links {
 public:
  using Frame = typename Frames::Frame;
  using Direction = impairment::Direction;

  Links(Owner& owner, size_t max_under_way) : owner_(owner), under_way_(max_under_way) {}
  ~Links() {
    while (!under_way_.empty()) Frames::release(under_way_.pop().item.frame);
  }
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Frames under way keep their time of arrival. Takes memory, so that cross() does not; may throw
  // std::bad_alloc.
  void set(Port& port, Direction direction, const impairment::Spec& spec) {
    under_way_.reserve();
    impaired_ -= port.links.get(direction) != nullptr;
    port.links.set(direction, spec);
    impaired_ += port.links.get(direction) != nullptr;
  }
  // True while any link has impairments.
  bool impaired() const noexcept { return impaired_ != 0; }

  // Hands a frame to a link. `now` never goes back.
  void cross(Port& port, Direction direction, TimeNs now, Frame frame) {
    ImpairedLink* const link = port.links.get(direction);
    if (link == nullptr) return owner_.arrive(port, direction, now, std::move(frame));
    const impairment::Fate fate = link->judge(now, Frames::length_bytes(frame));
    if (fate.arrival_count == 0) return owner_.lose(port, direction, fate.loss, std::move(frame));
    const auto no_room = [&](Frame&& lost) {
      link->on_no_room();
      owner_.lose(port, direction, impairment::Loss::queue_full, std::move(lost));
    };
    each_arrival<Frames>(
        fate, frame,
        [&](const impairment::Arrival& arrival, Frame&& arriving) {
          if (arrival.at_ns <= now) return owner_.arrive(port, direction, now, std::move(arriving));
          UnderWay item{&port, direction, std::move(arriving)};
          if (!under_way_.push(arrival.at_ns, std::move(item))) no_room(std::move(item.frame));
        },
        no_room);
  }

  // kNever when nothing is under way.
  TimeNs next_arrival() const noexcept { return under_way_.next(); }

  // Lets the frames that are due by now arrive, each at its own time, so that a second link on the
  // way counts from then.
  void advance(TimeNs now) {
    while (next_arrival() <= now) {
      auto entry = under_way_.pop();
      owner_.arrive(*entry.item.port, entry.item.direction, entry.at, std::move(entry.item.frame));
    }
  }

 private:
  struct UnderWay {
    Port* port;  // the port whose link the frame is on
    Direction direction;
    Frame frame;
  };

  Owner& owner_;
  DueQueue<UnderWay> under_way_;
  unsigned impaired_ = 0;  // links, one direction counting as one
};

}  // namespace rocemu::network
