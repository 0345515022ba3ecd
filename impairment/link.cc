#include "impairment/link.h"

#include <algorithm>

namespace rocemu::impairment {
namespace {

using Wide = unsigned __int128;

constexpr uint64_t kBitNsPerByteS = 8'000'000'000;

// After a longer silence than that of so many outages they are not drawn one by one.
constexpr uint64_t kOutagesCaughtUp = 1000;

}  // namespace

bool Link::in_outage(uint64_t now_ns) {
  if (impairments_.outage_interval_ns == 0) return false;
  const uint64_t period_ns = impairments_.outage_interval_ns + impairments_.outage_length_ns;
  while (!outage_drawn_ || now_ns >= outage_until_ns_) {
    const bool recent =
        outage_drawn_ && (now_ns - outage_until_ns_) / kOutagesCaughtUp <= period_ns;
    const uint64_t after = recent ? outage_until_ns_ : now_ns;
    outage_from_ns_ = after + random_.between(1, 2 * impairments_.outage_interval_ns);
    outage_until_ns_ = outage_from_ns_ + random_.between(1, 2 * impairments_.outage_length_ns + 1);
    outage_drawn_ = true;
  }
  return now_ns >= outage_from_ns_;
}

Fate Link::judge(uint64_t now_ns, size_t length_bytes) {
  Fate fate;
  if (in_outage(now_ns)) {
    fate.loss = Loss::outage;
    return fate;
  }
  uint64_t leaves_ns = now_ns;
  if (impairments_.rate_bits_per_s > 0) {
    const uint64_t rate = impairments_.rate_bits_per_s;
    const uint64_t starts_ns = std::max(now_ns, free_at_ns_);
    // The bytes that wait follow from the time that they will take.
    const Wide waiting_bytes = Wide{starts_ns - now_ns} * rate / kBitNsPerByteS;
    if (impairments_.queue_limit_bytes > 0 &&
        waiting_bytes + length_bytes > impairments_.queue_limit_bytes) {
      fate.loss = Loss::queue_full;
      return fate;
    }
    leaves_ns = free_at_ns_ = starts_ns + length_bytes * kBitNsPerByteS / rate;
  }
  if (random_.chance(impairments_.loss_ppm)) {
    fate.loss = Loss::random;
    return fate;
  }
  fate.arrivals[fate.arrival_count++] = arrive(leaves_ns, length_bytes);
  if (random_.chance(impairments_.duplicate_ppm))
    fate.arrivals[fate.arrival_count++] = arrive(leaves_ns, length_bytes);
  return fate;
}

Arrival Link::arrive(uint64_t leaves_ns, size_t length_bytes) {
  Arrival arrival;
  arrival.at_ns = leaves_ns + impairments_.delay_ns + random_.below(impairments_.jitter_ns + 1);
  if (random_.chance(impairments_.reorder_ppm)) {
    arrival.at_ns += random_.below(impairments_.reorder_delay_ns + 1);
  } else {
    arrival.at_ns = last_arrival_ns_ = std::max(arrival.at_ns, last_arrival_ns_);
  }
  if (random_.chance(impairments_.corrupt_ppm)) {
    arrival.corrupted = true;
    arrival.corrupt_offset_bytes = random_.below(length_bytes);
    arrival.corrupt_mask = static_cast<uint8_t>(random_.between(1, 255));
  }
  return arrival;
}

void corrupt(const Arrival& arrival, std::span<std::byte> frame) {
  if (arrival.corrupted) frame[arrival.corrupt_offset_bytes] ^= std::byte{arrival.corrupt_mask};
}

}  // namespace rocemu::impairment
