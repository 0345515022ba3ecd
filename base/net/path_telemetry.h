// Path telemetry: what the switches on the way of a packet say of the ports that it left by, as
// HPCC asks for it (Li et al., SIGCOMM 2019, 3.1). A sender adds an empty record of the path, each
// switch fills in one hop of it, and the receiver sends it back with its acknowledgement.
//
// It is an option of UDP (RFC 9868), behind the datagram: IP's length is greater than UDP's, and a
// receiver that knows nothing of options does not look there. RoCE's ICRC ends with the datagram,
// so that a switch may write here; it covers IP's length, which therefore never changes on the way.
//
//   offset  bytes
//    0      2      checksum of the options: 0, not used, as RoCE does not use UDP's
//    2      1      kind: 127, an experiment
//    3      1      length, from the kind to the last hop that there is room for
//    4      2      the experiment: 0x524f (in no registry)
//    6      1      1: on its way back
//    7      1      hops: switches passed, which may be more than there is room for
//    8      4      path: a number that the ports passed give
//   12      16 n   for each hop: its time in ns, the bytes that the port has sent, those that wait
//                  in it, its rate in kbit/s; 4 each. The first two begin at 0 again after 2^32.
//
// The record's bytes are as hostile as any other bytes of a frame: nothing is read or written but
// behind is_path_telemetry().
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/byte_order.h"

namespace rocemu {

inline constexpr size_t kTelemetryHeaderBytes = 12;
inline constexpr size_t kTelemetryHopBytes = 16;
inline constexpr unsigned kMaxTelemetryHops = 8;  // the most hops that a record has room for
inline constexpr unsigned kMaxTelemetryPassed = 255;

// The length of a record with room for `hops`.
constexpr size_t telemetry_bytes(unsigned hops) noexcept {
  return kTelemetryHeaderBytes + hops * kTelemetryHopBytes;
}
inline constexpr size_t kMaxTelemetryBytes = telemetry_bytes(kMaxTelemetryHops);

struct TelemetryHop {
  uint32_t time_ns = 0;
  uint32_t sent_bytes = 0;
  uint32_t queue_bytes = 0;
  uint32_t rate_kbps = 0;

  bool operator==(const TelemetryHop&) const = default;
};

namespace telemetry_detail {
inline constexpr uint8_t kKindExperiment = 127;
inline constexpr uint16_t kExperiment = 0x524f;
inline constexpr size_t kChecksumBytes = 2;
}  // namespace telemetry_detail

// True when `surplus`, what stands between the end of a UDP datagram and that of its IP packet, is
// such a record and nothing else.
inline bool is_path_telemetry(std::span<const std::byte> surplus) noexcept {
  using namespace telemetry_detail;
  const size_t bytes = surplus.size();
  if (bytes < kTelemetryHeaderBytes || bytes > kMaxTelemetryBytes ||
      (bytes - kTelemetryHeaderBytes) % kTelemetryHopBytes != 0)
    return false;
  const std::byte* const p = surplus.data();
  return load_be16(p) == 0 && load_u8(p + 2) == kKindExperiment &&
         kChecksumBytes + load_u8(p + 3) == bytes && load_be16(p + 4) == kExperiment &&
         load_u8(p + 6) <= 1;
}

// Writes an empty record with room for `hops`, at most kMaxTelemetryHops, to telemetry_bytes(hops).
inline void write_path_telemetry(std::byte* to, unsigned hops) noexcept {
  using namespace telemetry_detail;
  std::memset(to, 0, telemetry_bytes(hops));
  store_u8(to + 2, kKindExperiment);
  store_u8(to + 3, static_cast<uint32_t>(telemetry_bytes(hops) - kChecksumBytes));
  store_be16(to + 4, kExperiment);
}

// Precondition of all that follows: is_path_telemetry() of it.

inline size_t telemetry_record_bytes(const std::byte* record) noexcept {
  return telemetry_detail::kChecksumBytes + load_u8(record + 3);
}
inline unsigned telemetry_room(const std::byte* record) noexcept {
  return static_cast<unsigned>((telemetry_record_bytes(record) - kTelemetryHeaderBytes) /
                               kTelemetryHopBytes);
}
inline bool telemetry_returns(const std::byte* record) noexcept { return load_u8(record + 6) != 0; }
inline void return_telemetry(std::byte* record) noexcept { store_u8(record + 6, 1); }
inline unsigned telemetry_passed(const std::byte* record) noexcept { return load_u8(record + 7); }
inline uint32_t telemetry_path(const std::byte* record) noexcept { return load_be32(record + 8); }

// Hop number `index`, below telemetry_room(); zero when that many switches were not passed.
inline TelemetryHop telemetry_hop(const std::byte* record, unsigned index) noexcept {
  const std::byte* const p = record + telemetry_bytes(index);
  return {load_be32(p), load_be32(p + 4), load_be32(p + 8), load_be32(p + 12)};
}

// Adds the hop of the switch that the packet leaves by `port`, a number that no other port of the
// network has. Leaves a record on its way back as it is.
inline void stamp_telemetry(std::byte* record, uint32_t port, const TelemetryHop& hop) noexcept {
  if (telemetry_returns(record)) return;
  const unsigned passed = telemetry_passed(record);
  if (passed < kMaxTelemetryPassed) store_u8(record + 7, passed + 1);
  store_be32(record + 8, telemetry_path(record) * 31 + port + 1);
  if (passed >= telemetry_room(record)) return;
  std::byte* const p = record + telemetry_bytes(passed);
  store_be32(p, hop.time_ns);
  store_be32(p + 4, hop.sent_bytes);
  store_be32(p + 8, hop.queue_bytes);
  store_be32(p + 12, hop.rate_kbps);
}

}  // namespace rocemu
