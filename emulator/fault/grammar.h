// The text form of faults: the one that people type, configuration files hold and the control
// protocol carries.
//
//   DEVICE WHAT [KEY=VALUE]...
//
//   rocemu0 qp-error status=retry-exc-err qp=17 after=2s
//   all port-down for=100ms every=1s
//   rocemu1 call-fails call=create-qp errno=ENOMEM program=ucx_perftest nth=3
//   rocemu0 quirks=rxe
//
// Words are separated by spaces or commas, KEY=VALUE in any order, each once. Keys that are not of
// one WHAT alone (kinds.h): of whom, qp pid program peer; when, at after for every times nth
// request packet p seed. Quantities have units, as of impairment/quantity.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/fault/spec.h"

namespace rocemu::fault {

// Either faults, one or a family's quirks, or an error: one line without a full stop that names the
// word that is wrong and shows the right form.
struct ParsedFaults {
  std::vector<Spec> faults;
  std::string error;
};

ParsedFaults parse_faults(std::string_view text);

// The shortest text that parse_faults() makes the same fault of.
std::string to_text(const Spec& spec);

// The text of a table of a configuration file, [[fault]], whose keys are those of the text and
// `device` and `what`.
std::string text_of_table(const std::vector<std::pair<std::string, std::string>>& keys);

}  // namespace rocemu::fault
