// The place where a script is played: a NIC, programs on it, and the script's end of its wire. In
// virtual time or against a peer that is alive.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/script/play/frames.h"

namespace rocemu::script {

struct SeenFrame {
  TimeNs at_ns = 0;
  std::vector<std::byte> bytes;
};

// The patience with which a script is played.
struct Patience {
  TimeNs wait_ns = 0;    // for things that are expected, where the script does not say
  TimeNs late_ns = 0;    // for things that come later than the script says
  TimeNs quiet_ns = 0;   // for things that are not to come, beyond what the script says
  TimeNs settle_ns = 0;  // at the end, for answers that no line expects
};

class Stage {
 public:
  virtual ~Stage() = default;
  virtual const Ends& ends() const = 0;
  virtual Patience patience() const = 0;
  virtual TimeNs now_ns() = 0;
  // Lets time pass until something may have happened, and at most until then.
  virtual void advance(TimeNs until_ns) = 0;
  // Has a verb called: at once, also for those that wait, which give "nothing" when there is none.
  virtual Fields call(const Call& call) = 0;
  virtual void send(std::span<const std::byte> frame) = 0;
  // False where frames bear the address of a socket, whatever the script says.
  virtual bool sends_from_anywhere() const { return true; }
  // Takes the next frame that has come from the NIC.
  virtual std::optional<SeenFrame> take_frame() = 0;
};

}  // namespace rocemu::script
