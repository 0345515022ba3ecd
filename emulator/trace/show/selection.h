// Which QPs of a trace are shown: those that fit all that is said.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/trace/show/story.h"

namespace rocemu::trace {

struct Selection {
  uint32_t qpn = 0;                  // 0: all
  uint16_t device = kNoDevice;       // kNoDevice: all
  std::vector<uint16_t> programs{};  // numbers of Table::program; empty: all

  bool everything() const { return qpn == 0 && device == kNoDevice && programs.empty(); }
  bool takes(uint16_t its_device, uint32_t its_qpn, uint16_t its_program) const {
    return (qpn == 0 || its_qpn == qpn) && takes_device(its_device) &&
           (programs.empty() || std::ranges::find(programs, its_program) != programs.end());
  }
  bool takes(const Qp& qp) const { return takes(qp.device, qp.qpn, qp.program); }
  // What is of a device and of no QP.
  bool takes_all_of(uint16_t its_device) const {
    return qpn == 0 && programs.empty() && takes_device(its_device);
  }

 private:
  bool takes_device(uint16_t its_device) const {
    return device == kNoDevice || its_device == device;
  }
};

}  // namespace rocemu::trace
