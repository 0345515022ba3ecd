// Deviations of a family's devices from what programs expect, as faults: drivers or the trackers of
// programs tell of each. docs/faults.md has the sources.
#pragma once

#include <span>
#include <string_view>

namespace rocemu::fault {

std::span<const std::string_view> quirk_families();
// Faults as grammar.h has them, but for the device; empty when there is no such family.
std::span<const std::string_view> quirk_texts(std::string_view family);

}  // namespace rocemu::fault
