// Path telemetry of one QP (base/net/path_telemetry.h): both ends of it.
//
// 1. A requester whose algorithm asks for it offers it: its SENDs and WRITEs bear an empty record.
// 2. A responder keeps the newest record that requests have brought, and its next ACK or NAK, or
//    the answer to an atomic, takes that back, once. It need not have an algorithm of its own.
// 3. A record that comes back is the peer's agreement. Until then kMaxTries answers without one
//    that might have borne one, of which an ACK timeout counts as half, end the offer: the peer, or
//    something on the way, knows nothing of it, and from then on packets are as the standard has
//    them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/net/path_telemetry.h"
#include "emulator/congestion/algorithm.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

// Rule 2.
class TelemetryEcho {
 public:
  // Precondition: it is a record (wire::Packet::telemetry).
  void note(std::span<const std::byte> record) {
    if (telemetry_returns(record.data())) return;
    std::ranges::copy(record, record_.begin());
    return_telemetry(record_.data());
    bytes_ = static_cast<uint32_t>(record.size());
  }
  // True when `answer` is of a kind that takes a record back: all do but the data of READs.
  static bool travels_with(const wire::Packet& answer) {
    switch (answer.operation()) {
      case wire::Operation::acknowledge:
      case wire::Operation::atomic_acknowledge:
        return true;
      default:
        return wire::selective::is_selective_nak(answer);
    }
  }
  // The size of the record that waits; 0: no record waits.
  uint32_t bytes() const { return bytes_; }
  // Precondition: a record waits, and there is room for it.
  void take(std::byte* to) {
    std::copy_n(record_.begin(), bytes_, to);
    bytes_ = 0;
  }

 private:
  std::array<std::byte, kMaxTelemetryBytes> record_;
  uint32_t bytes_ = 0;
};

// Rules 1 and 3.
class TelemetryOffer {
 public:
  // A record has as many hops as a fat-tree has switches between two hosts.
  static constexpr unsigned kHops = 5;

  // The bytes of the record that an algorithm with such needs offers; 0: it offers none.
  static uint32_t bytes_for(const congestion::Needs& needs) {
    if (needs.telemetry) return static_cast<uint32_t>(telemetry_bytes(kHops));
    return needs.hop_count ? static_cast<uint32_t>(telemetry_bytes(0)) : 0;
  }

  explicit TelemetryOffer(const congestion::Needs& needs) : bytes_(bytes_for(needs)) {}

  // The bytes that a request's record takes; 0: requests bear none.
  uint32_t bytes() const { return bytes_; }
  void write(std::byte* to) {
    write_path_telemetry(
        to, static_cast<unsigned>((bytes_ - kTelemetryHeaderBytes) / kTelemetryHopBytes));
    waits_ = true;
  }

  // `record`: empty, or one. `may_bear`: the answer is one that takes a record back.
  void on_answer(std::span<const std::byte> record, bool may_bear) {
    hop_count_ = passed_ = 0;
    if (bytes_ == 0) return;
    if (record.empty() || !telemetry_returns(record.data())) {
      if (waits_ && may_bear) count_tries(1);
      return;
    }
    agreed_ = true;
    waits_ = false;
    read(record.data());
  }
  void on_ack_timeout() { count_tries(kMaxTries / 2); }

  // Adds what the last answer has told.
  void tell(congestion::Acknowledgement& heard) const {
    heard.hops = std::span(hops_).first(hop_count_);
    heard.hops_passed = passed_;
    heard.path = path_;
  }

 private:
  static constexpr unsigned kMaxTries = 16;

  void count_tries(unsigned tries) {
    if (agreed_ || bytes_ == 0) return;
    tries_ += tries;
    if (tries_ >= kMaxTries) bytes_ = 0;
  }

  // Reads a record that came back. Its hops count only if it had room for the whole path: some of
  // them say too little.
  void read(const std::byte* record) {
    passed_ = telemetry_passed(record);
    path_ = telemetry_path(record);
    if (passed_ > telemetry_room(record)) return;
    hop_count_ = passed_;
    for (unsigned i = 0; i < hop_count_; ++i) {
      const TelemetryHop hop = telemetry_hop(record, i);
      hops_[i] = {.queue_bytes = hop.queue_bytes,
                  .tx_bytes = hop.sent_bytes,
                  .timestamp_ns = hop.time_ns,
                  .link_rate_bps = uint64_t{hop.rate_kbps} * 1000};
    }
  }

  uint32_t bytes_;
  bool agreed_ = false;
  bool waits_ = false;  // a record was sent since one came back
  unsigned tries_ = 0;
  std::array<congestion::HopTelemetry, kMaxTelemetryHops> hops_{};
  unsigned hop_count_ = 0;
  unsigned passed_ = 0;
  uint32_t path_ = 0;
};

}  // namespace rocemu::transport
