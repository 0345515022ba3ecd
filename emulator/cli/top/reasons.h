// Says why a QP waits, for people. The names are those of the status report (docs/control.md), and
// "pause", which is told apart here (model.h, rule 4).
#pragma once

#include <string>
#include <string_view>

#include "emulator/cli/top/model.h"

namespace rocemu::cli::top {

// Returns what the column says; "-" for nothing, and the report's own word for one that is not
// known.
std::string reason_word(std::string_view waits_for);

// A sentence or two: what the QP waits for, and what would help. Empty for nothing.
std::string reason_sentence(const Qp& qp);

}  // namespace rocemu::cli::top
