#include "emulator/shake/frames/overtaking.h"

#include "emulator/wire/mad.h"
#include "emulator/wire/opcode.h"

namespace rocemu::shake {
namespace {

constexpr uint32_t kDatagramPpm = 200'000;
constexpr uint32_t kConnectionPpm = 20'000;
constexpr TimeNs kMaxNs = 200'000;

}  // namespace

TimeNs Overtaking::due(TimeNs now, const wire::Packet& packet) noexcept {
  const wire::Qpn qpn = packet.bth.destination_qp;
  if (packet.transport() == wire::Transport::ud && qpn != wire::kGsiQpn)
    return dice_.roll(kDatagramPpm) ? now + dice_.time_up_to(kMaxNs) : now;
  if (packet.transport() != wire::Transport::uc) return now;
  const TimeNs held = holds_.held_until(now, qpn);
  if (held > now || !dice_.roll(kConnectionPpm)) return held;
  const TimeNs until = now + dice_.time_up_to(kMaxNs);
  holds_.hold(qpn, until);
  return until;
}

}  // namespace rocemu::shake
