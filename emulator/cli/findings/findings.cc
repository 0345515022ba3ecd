#include "emulator/cli/findings/findings.h"

#include <fstream>
#include <map>
#include <string>

#include "verbs_shim/abi/check_files.h"

namespace rocemu::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_string(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string();
}

bool is_frame(const Json& frame) {
  return frame.is_object() && is_string(frame, "function") && is_string(frame, "module");
}

bool is_backtrace(const Json& backtrace) {
  if (!backtrace.is_object() || !is_string(backtrace, "label") || !backtrace.contains("frames") ||
      !backtrace["frames"].is_array())
    return false;
  for (const Json& frame : backtrace["frames"]) {
    if (!is_frame(frame)) return false;
  }
  return true;
}

bool is_finding(const Json& finding) {
  if (!finding.is_object()) return false;
  for (const char* key : {"name", "sentence", "why", "advice", "verb", "program"}) {
    if (!is_string(finding, key)) return false;
  }
  if (!finding.contains("backtraces") || !finding["backtraces"].is_array()) return false;
  for (const Json& backtrace : finding["backtraces"]) {
    if (!is_backtrace(backtrace)) return false;
  }
  return true;
}

// The part that a finding has in all processes: its name, verb and place, or else its sentence.
std::string identity(const Json& finding) {
  std::string text = finding["name"].get<std::string>() + "\n" + finding["verb"].get<std::string>();
  if (finding["backtraces"].empty()) return text + finding["sentence"].get<std::string>();
  return text +
         finding["backtraces"][0]["frames"].dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::vector<FoundOnce> read_findings(const std::filesystem::path& folder) {
  std::vector<FoundOnce> found;
  std::map<std::string, size_t> known;
  std::ifstream file(folder / ROCEMU_CHECK_FINDINGS_FILE);
  for (std::string line; std::getline(file, line);) {
    Json finding = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!is_finding(finding)) continue;
    const auto [place, is_new] = known.emplace(identity(finding), found.size());
    if (is_new) {
      found.push_back({std::move(finding), 1});
    } else {
      ++found[place->second].times;
    }
  }
  return found;
}

std::string counts_text(const std::vector<FoundOnce>& findings) {
  std::map<std::string, unsigned> counts;
  for (const FoundOnce& found : findings) ++counts[found.finding["name"].get<std::string>()];
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? ": " : ", ") + name + " " + std::to_string(count);
  return std::to_string(findings.size()) + (findings.size() == 1 ? " finding" : " findings") + text;
}

}  // namespace rocemu::cli
