// Plays a script, line by line, and says what came otherwise.
#pragma once

#include <string>
#include <vector>

#include "emulator/script/language/script.h"
#include "emulator/script/play/stage.h"

namespace rocemu::script {

struct Verdict {
  enum class Kind : uint8_t {
    ok,
    failed,
    not_applicable,  // the peer does not have what the script is about
  };
  Kind kind = Kind::ok;
  Place place;                        // the line's
  TimeNs at_ns = 0;                   // since the script's begin
  std::string expected;               // as it is written
  std::string came;                   // instead
  std::vector<std::string> exchange;  // all that happened, a line each
};

Verdict play(const Script& script, Stage& stage);

}  // namespace rocemu::script
