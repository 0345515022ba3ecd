// IdentificationHistory says which datagrams that came without their IP header are right.
//
// The ICRC covers the IPv4 identification, and there is one that makes it right for one changed
// datagram in 65536 (wire/icrc_identification.h). That is not chance alone: some changes of the
// byte 81 behind a BTH always have one. So an identification that only the ICRC tells is believed
// where it is one that the sender may have come to:
//
// 1. A datagram that is right as it is has the identification of a socket like ours, 0 or its place
//    in a batch. Its sender numbers none, and no other is believed, unless it came to 0 by
//    counting.
// 2. From a sender that was not heard of yet, or that counts and was not heard of for kLongNs
//    (Linux rxe counts on with time), any is.
// 3. From others, one near the one before, whether that was believed or not: so a sender that
//    begins to count, or jumps, is understood with its second datagram.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"
#include "emulator/wire/icrc.h"
#include "emulator/wire/icrc_identification.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class IdentificationHistory {
 public:
  // `l3` as for wire::icrc_matches().
  bool is_right(TimeNs now, const wire::Gid& source, std::span<const std::byte> l3) {
    const bool exact = wire::icrc_matches(l3);
    const auto told = exact ? uint16_t{0} : wire::identification_by_icrc(l3);
    if (!told) return false;
    Sender& sender = sender_of(source);
    const bool known = sender.last_at != 0;
    const bool near = known && is_near(*told, sender.last);
    const bool believed = near || (sender.counts && (!known || sender.last_at + kLongNs <= now));
    sender.counts = exact ? near && sender.counts : near || sender.counts;
    sender.last = *told;
    sender.last_at = exact && !sender.counts ? 0 : now;
    return exact || believed;
  }

 private:
  static constexpr uint16_t kNear = 1024;
  static constexpr TimeNs kLongNs = 100'000'000;
  static constexpr size_t kSenders = 64;

  struct Sender {
    wire::Gid address;
    bool counts = true;  // as far as is known
    uint16_t last = 0;
    TimeNs last_at = 0;  // 0: it has told of none
  };

  static bool is_near(uint16_t one, uint16_t other) {
    return static_cast<uint16_t>(one - other + kNear) <= 2 * kNear;
  }

  // Senders share places. One that takes another's begins anew.
  Sender& sender_of(const wire::Gid& address) {
    Sender& sender = senders_[address.bytes.back() % kSenders];
    if (sender.address != address) sender = {address};
    return sender;
  }

  std::array<Sender, kSenders> senders_{};
};

}  // namespace rocemu::transport
