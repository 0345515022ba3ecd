// The daemon's status, for people. Little is expected of the JSON, so that either side may be
// newer: an object; in it `devices`, an array of objects with `name`, and there `gids` (an array of
// strings, or of objects) and `objects` (name → count). Other objects are taken for groups of
// counters, of which those that are not zero or null are shown; other plain fields are shown as
// they are.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rocemu::cli {

std::string status_text(const nlohmann::ordered_json& status);

// The answer to ROCEMU_OP_LINK_SHOW as a table; of the counts those that are not zero.
std::string links_text(const nlohmann::ordered_json& links);

// The answer to ROCEMU_OP_FAULT_LIST as a table.
std::string faults_text(const nlohmann::ordered_json& faults);

}  // namespace rocemu::cli
