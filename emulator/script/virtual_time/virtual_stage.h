// A stage in virtual time: a device of the simulator with the script at the other end of its link.
// Nothing reads a clock, and the same script happens alike every time.
#pragma once

#include <deque>

#include "emulator/script/play/stage.h"
#include "emulator/script/virtual_time/hca_program.h"
#include "emulator/sim/fabric.h"

namespace rocemu::script {

class VirtualStage final : public Stage {
 public:
  VirtualStage();
  ~VirtualStage() override;

  const Ends& ends() const override { return ends_; }
  Patience patience() const override;
  TimeNs now_ns() override { return fabric_.now_ns(); }
  void advance(TimeNs until_ns) override;
  Fields call(const Call& call) override;
  // Takes a microsecond, so that each frame has a turn of the NIC's to itself.
  void send(std::span<const std::byte> frame) override;
  std::optional<SeenFrame> take_frame() override;

 private:
  class Wire;

  sim::Fabric fabric_{1};
  sim::HcaNode& nic_;
  Wire& wire_;
  Ends ends_;
  TimeNs awaited_ns_ = 0;  // the last time that advance() was to come to
  std::unique_ptr<HcaProgram> program_;
};

}  // namespace rocemu::script
