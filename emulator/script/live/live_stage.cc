#include "emulator/script/live/live_stage.h"

#include <algorithm>
#include <stdexcept>

#include "base/monotonic_clock.h"
#include "emulator/script/language/parser.h"

namespace rocemu::script {

namespace {

constexpr TimeNs kStepNs = 1'000'000;
constexpr TimeNs kPatienceSlacks = 10;
constexpr TimeNs kQuietSlackParts = 2;

}  // namespace

LiveStage::LiveStage(const LiveOptions& options)
    : options_(options),
      agent_(LineSocket::connect(options.own, options.peer, options.agent_port)),
      wire_(agent_.own_address(), options.peer) {
  const std::optional<std::string> greeting = agent_.read();
  if (greeting != kAgentReady)
    throw std::runtime_error("the agent says: " + greeting.value_or("nothing, it has ended"));
  // Frames that the QPs of the script before sent until they were destroyed are thrown away.
  while (wire_.receive()) {
  }
  // The kernel sends from the port that the socket is bound to.
  ends_.udp_source_port = wire::kRoceUdpPort;
  ends_.ip.source = wire::Gid{agent_.own_address()};
  ends_.ip.destination = wire::Gid{options.peer};
}

Patience LiveStage::patience() const {
  const TimeNs quiet_ns =
      options_.quiet_ns != 0 ? options_.quiet_ns : options_.slack_ns / kQuietSlackParts;
  return {.wait_ns = kPatienceSlacks * options_.slack_ns,
          .late_ns = options_.slack_ns,
          .quiet_ns = quiet_ns,
          .settle_ns = quiet_ns};
}

TimeNs LiveStage::now_ns() { return monotonic_now_ns(); }

void LiveStage::advance(TimeNs until_ns) {
  const TimeNs now = now_ns();
  if (now < until_ns) wire_.wait(std::min(until_ns - now, kStepNs));
}

Fields LiveStage::call(const Call& call) {
  agent_.write(call.source);
  const std::optional<std::string> answer = agent_.read();
  if (!answer) throw std::runtime_error("the agent has ended");
  if (answer->starts_with("! ")) throw Impossible(answer->substr(2));
  return parse_result(call.verb, *answer);
}

std::optional<SeenFrame> LiveStage::take_frame() {
  auto frame = wire_.receive();
  if (!frame) return std::nullopt;
  return SeenFrame{now_ns(), std::move(*frame)};
}

}  // namespace rocemu::script
