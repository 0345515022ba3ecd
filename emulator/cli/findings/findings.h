// The findings of the processes of a checked program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rocemu::cli {

struct FoundOnce {
  nlohmann::ordered_json finding;  // as the checker wrote it
  uint64_t times = 1;              // in how many processes
};

// Reads `folder`/findings.jsonl, if it is there. The same finding of several processes is one. A
// line that is no finding is passed over: programs can write there, too.
std::vector<FoundOnce> read_findings(const std::filesystem::path& folder);

// "3 findings: leaks 2, cq-too-small 1"
std::string counts_text(const std::vector<FoundOnce>& findings);

}  // namespace rocemu::cli
