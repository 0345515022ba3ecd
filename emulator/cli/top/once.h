// Makes what `rocemu top --once` prints.
#pragma once

#include <string>

#include "emulator/cli/top/model.h"
#include "emulator/cli/top/table.h"

namespace rocemu::cli::top {

// Choice says which QPs are shown, and in which order.
struct Choice {
  std::string filter;
  Order order;
};

// Tables of the devices, programs and QPs, which `choice` is about.
std::string once_text(const View& view, const Choice& choice);
// The same for programs: docs/top.md describes it.
Json once_json(const View& view, const Choice& choice);

}  // namespace rocemu::cli::top
