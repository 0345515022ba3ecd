// A stage that is alive: the script is one end of a wire, and at the other one is a NIC, rocemu,
// Linux rxe or hardware, with an agent on it that calls verbs (agent/).
#pragma once

#include <string>

#include "emulator/script/live/line_socket.h"
#include "emulator/script/live/udp_wire.h"
#include "emulator/script/play/stage.h"

namespace rocemu::script {

struct LiveOptions {
  IpAddress peer;
  uint16_t agent_port = kAgentPort;
  IpAddress own{};                // all zero: as the kernel chooses
  TimeNs slack_ns = 200'000'000;  // the most that things may be late
  TimeNs quiet_ns = 0;            // silence that means nothing comes; 0: half the slack
};

class LiveStage final : public Stage {
 public:
  // Throws std::system_error.
  explicit LiveStage(const LiveOptions& options);

  const Ends& ends() const override { return ends_; }
  Patience patience() const override;
  TimeNs now_ns() override;
  void advance(TimeNs until_ns) override;
  // Throws std::runtime_error when the agent is gone.
  Fields call(const Call& call) override;
  void send(std::span<const std::byte> frame) override { wire_.send(frame); }
  std::optional<SeenFrame> take_frame() override;
  bool sends_from_anywhere() const override { return false; }

 private:
  LiveOptions options_;
  LineSocket agent_;
  UdpWire wire_;
  Ends ends_;
};

}  // namespace rocemu::script
