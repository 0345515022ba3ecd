#include "emulator/shake/frames/late_acks.h"

#include <algorithm>

#include "emulator/wire/opcode.h"

namespace rocemu::shake {
namespace {

constexpr uint32_t kLatePpm = 30'000;
constexpr uint64_t kVeryLateOneIn = 32;  // among those that are late at all
constexpr TimeNs kLateNs = 100'000;
constexpr TimeNs kVeryLateNs = 20'000'000;

}  // namespace

TimeNs LateAcks::due(TimeNs now, const wire::Packet& packet) noexcept {
  if (packet.traits().kind != wire::MessageKind::response) return now;
  const wire::Qpn qpn = packet.bth.destination_qp;
  const TimeNs held = holds_.held_until(now, qpn);
  if (held > now || !dice_.roll(kLatePpm)) return held;
  const TimeNs until = now + draw_delay(qpn);
  holds_.hold(qpn, until);
  return until;
}

TimeNs LateAcks::draw_delay(wire::Qpn qpn) {
  const bool very = dice_.below(kVeryLateOneIn) == 0;
  const TimeNs timeout = timeout_(qpn);
  const TimeNs drawn = dice_.time_up_to(very ? kVeryLateNs : kLateNs);
  return timeout == 0 ? drawn : std::min(drawn, timeout / 2);
}

}  // namespace rocemu::shake
