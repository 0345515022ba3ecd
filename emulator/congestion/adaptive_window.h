// A window that losses narrow: all that the configuration allows, until packets are lost.
//
// 1. Before the first loss, and when the window is whole again, nothing is paced, and answers are
//    only counted and their round trips noted. All that follows is for the time between.
// 2. The window is what may leave in the shortest round trip: the mean of those that the QPs on
//    the path have each measured (round_trips.h), so that equal windows are equal rates. It may be
//    less than a packet: many QPs before a queue of two packets need that. Packets leave evenly, an
//    interval apart that varies a little by chance, since QPs in step find a full queue always.
//    Twice the window may be in flight, so that it is the pace that bounds, and a queue is no
//    longer than the path.
// 3. Each packet that is acknowledged widens it by a 25th, or by less when it is small. With
//    go-back-N a loss costs what is in flight, so losses have to be rare by the window: one takes
//    away up to three quarters, and the less the more windows usually come between two. This comes
//    to rest at some four windows between losses, for whatever path and number of QPs, and below
//    a packet at a loss in four packets.
// 4. Longer without a loss than usual means that the path has become free: it widens faster.
// 5. A loss that no queue goes with is one by chance, to which a narrower window is no answer: it
//    counts a 20th, unless there are many in a window. There is a queue when the last two round
//    trips were longer than the shortest by a 25th: one alone may have waited for a lost ACK.
// 6. With a queue that stays (no round trip is short), of more than a few packets of this QP, the
//    window widens by no more than a quarter of a packet for each time that it was delivered: more
//    would only make the queue longer. It is as much for a large window as for a small one, so that
//    QPs which share the queue come to equal windows.
// 7. An ACK timeout is a loss that a queue goes with, whatever the round trips say: nothing has
//    come back that could tell. An answer that is overdue is a loss when the window is narrow
//    already, or when no round trip was ever measured. Before the first measurement the window
//    becomes a few packets at once, that are not paced yet.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "emulator/congestion/congestion_control.h"
#include "emulator/congestion/round_trips.h"

namespace rocemu::congestion {

class AdaptiveWindow {
 public:
  // `limit_packets`: the most that the configuration allows; the window never exceeds it. `seed`
  // decides the intervals.
  AdaptiveWindow(uint32_t limit_packets, uint32_t seed)
      : limit_(limit_packets), random_(seed * 2'654'435'761u) {}

  // Others on the path are heard of from now on.
  void join(std::shared_ptr<PathRoundTrips> path) { round_trips_.join(std::move(path)); }

  uint32_t packets() const { return narrowed() ? packets_ : limit_; }
  // True while packets are to leave one by one.
  bool spaces_out() const { return interval_ns_ != 0; }
  TimeNs interval_ns() {
    if (interval_ns_ == 0) [[likely]]
      return 0;
    random_ = random_ * 1'664'525 + 1'013'904'223;
    return interval_ns_ - interval_ns_ / 8 + ((interval_ns_ / 4 * (random_ >> 16)) >> 16);
  }

  void on_sent(TimeNs, uint32_t) {}
  void on_acknowledged(TimeNs, uint32_t packets, std::optional<TimeNs> rtt) {
    if (rtt) round_trips_.sample(*rtt);
    delivered_ += packets;
    if (narrowed()) [[unlikely]]
      widen(packets);
  }
  void on_nak(TimeNs now) { narrow(now, round_trips_.queue_seen()); }
  void on_overdue(TimeNs now) {
    if (narrowed() || !round_trips_.known()) narrow(now, round_trips_.queue_seen());
  }
  void on_timeout(TimeNs now) { narrow(now, true); }

 private:
  static constexpr double kWidening = 0.04;  // rule 3
  static constexpr double kMaxTaken = 0.75;
  static constexpr double kByChance = 0.05;       // rule 5: what such a loss counts …
  static constexpr double kMinDelivered = 0.125;  // … and how many windows are between them
  static constexpr double kFewPackets = 4;        // rule 6
  static constexpr double kEvenly = 6;
  static constexpr double kMinWindow = 1.0 / 128;
  static constexpr double kUnknownPackets = 16;  // rule 7
  static constexpr double kUnknownNs = 2e6;      // for a round trip that was not measured yet
  static constexpr double kMaxNs = 32e6;         // an interval

  bool narrowed() const { return packets_ != 0; }
  // The number of packets that those between two losses are held against: it sets what a loss
  // costs, and how long without one is longer than usual.
  double measure() const { return window_ + std::sqrt(window_); }

  void widen(uint32_t packets) {
    double factor = std::min(1.0, kEvenly / (1 + window_));
    if (window_ * round_trips_.standing_queue() <= kFewPackets) {
      const double usual = 2 * (between_losses_ + measure());
      factor = std::clamp(static_cast<double>(delivered_) / usual, 1.0, 1 / kWidening);
    }
    window_ += factor * kWidening * packets * window_ / (1 + window_);
    apply();
  }

  void narrow(TimeNs now, bool queue) {
    const double delivered = static_cast<double>(delivered_);
    if (!narrowed()) {
      window_ = limit_;
      between_losses_ = delivered;
      if (!round_trips_.known()) {
        window_ = std::min(window_, kUnknownPackets);
        packets_ = std::max(1u, static_cast<uint32_t>(window_));
        delivered_ = 0;
        narrowed_at_ = now;
        return;
      }
    } else if (delivered_ == 0 && round_trips_.known() &&
               now < narrowed_at_ + round_trips_.shortest_ns()) {
      return;  // packets sent since cannot have been answered
    }
    between_losses_ = (between_losses_ + delivered) / 2;
    const bool by_chance = !queue && between_losses_ >= kMinDelivered * window_;
    const double taken = kMaxTaken * measure() / (measure() + between_losses_);
    window_ = std::max(window_ * (1 - (by_chance ? kByChance : 1) * taken), kMinWindow);
    delivered_ = 0;
    narrowed_at_ = now;
    apply();
  }

  void apply() {
    if (window_ >= limit_) {
      packets_ = 0;
      interval_ns_ = 0;
      return;
    }
    packets_ = std::clamp(static_cast<uint32_t>(2 * window_ + 0.5), 1u, limit_);
    const double rtt_ns = round_trips_.known() ? round_trips_.common_ns() : kUnknownNs;
    interval_ns_ = std::max<TimeNs>(1, static_cast<TimeNs>(std::min(kMaxNs, rtt_ns / window_)));
  }

  uint32_t limit_;
  uint32_t random_;
  uint32_t packets_ = 0;       // the most in flight; 0: it is not narrowed
  TimeNs interval_ns_ = 0;     // between packets; 0: none
  double window_ = 0;          // in packets, while it is narrowed
  uint64_t delivered_ = 0;     // packets since the last loss
  double between_losses_ = 0;  // packets, smoothed
  TimeNs narrowed_at_ = 0;
  RoundTrips round_trips_;
};

static_assert(CongestionControl<AdaptiveWindow>);

}  // namespace rocemu::congestion
