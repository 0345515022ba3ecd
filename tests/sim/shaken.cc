#include "tests/sim/shaken.h"

#include "base/random.h"
#include "emulator/shake/frames/late_acks.h"
#include "emulator/shake/frames/overtaking.h"
#include "emulator/shake/memory/placement.h"
#include "emulator/shake/memory/scribble.h"

namespace rocemu::sim_scenarios {

using shake::Behaviour;

shake::Settings draw_shake(uint64_t scenario_seed) {
  constexpr uint64_t kApart = 0x5ca1ab1e'0ddba11;
  Random random(scenario_seed ^ kApart);
  shake::Settings settings;
  if (random.chance(600'000)) return settings;
  for (const Behaviour behaviour : {Behaviour::placement, Behaviour::scribble, Behaviour::late_acks,
                                    Behaviour::rnr, Behaviour::doorbells, Behaviour::overtaking})
    settings.chosen.set(shake::index_of(behaviour), random.below(2) == 0);
  settings.strength_percent = static_cast<uint32_t>(random.between(10, 100));
  settings.seed = random.next();
  return settings;
}

bool may_lend(const shake::Settings& settings) {
  return !settings.has(Behaviour::placement) && !settings.has(Behaviour::scribble) &&
         !settings.has(Behaviour::late_acks) && !settings.has(Behaviour::overtaking);
}

std::optional<shake::Dice> ShakenHost::dice_for(Behaviour behaviour) {
  if (!settings_.has(behaviour)) return std::nullopt;
  const uint64_t seed = Random(settings_.seed + (host_ << 32) + ++users_).next();
  return shake::Dice(seed, settings_.strength_percent, counts_[shake::index_of(behaviour)]);
}

sim::EndpointNode::Decorate ShakenHost::memory() {
  if (!settings_.has(Behaviour::placement) && !settings_.has(Behaviour::scribble)) return {};
  return [this](transport::Memory& memory) -> std::unique_ptr<transport::Memory> {
    const std::shared_ptr<transport::Memory> borrowed(std::shared_ptr<void>(), &memory);
    const auto placement = dice_for(Behaviour::placement);
    const auto scribble = dice_for(Behaviour::scribble);
    std::unique_ptr<transport::Memory> placed;
    if (placement) placed = std::make_unique<shake::Placement>(borrowed, *placement, nullptr);
    if (!scribble) return placed;
    const std::shared_ptr<transport::Memory> inner = placed ? std::move(placed) : borrowed;
    return std::make_unique<shake::Scribble>(inner, *scribble);
  };
}

bool ShakenHost::looks_at_frames() const {
  return settings_.has(Behaviour::late_acks) || settings_.has(Behaviour::overtaking);
}

void ShakenHost::delay_arrivals(sim::EndpointNode& node) {
  std::vector<std::shared_ptr<shake::ArrivalDelay>> delays;
  if (const auto dice = dice_for(Behaviour::late_acks))
    delays.push_back(std::make_shared<shake::LateAcks>(
        *dice, [&node](wire::Qpn qpn) { return node.endpoint().ack_timeout_ns(qpn); }));
  if (const auto dice = dice_for(Behaviour::overtaking))
    delays.push_back(std::make_shared<shake::Overtaking>(*dice));
  if (delays.empty()) return;
  node.arrival_due = [delays](TimeNs now, std::span<const std::byte> frame) {
    wire::Packet packet;
    if (wire::parse_frame(frame, packet) != wire::ParseError::none) return now;
    TimeNs due = now;
    for (const auto& delay : delays) due = std::max(due, delay->due(now, packet));
    return due;
  };
}

}  // namespace rocemu::sim_scenarios
