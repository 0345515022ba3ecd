#include "emulator/cli/findings/report_files.h"

#include <fstream>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// XML 1.0 has no characters below blank but these three.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (byte < 0x20 && c != '\n' && c != '\t') {
      result += '?';
    } else {
      result += c;
    }
  }
  return result;
}

std::string frame_text(const Json& frame) {
  std::string text = frame["function"].get<std::string>();
  if (text.empty()) text = "??";
  if (frame.contains("file") && frame["file"].is_string()) {
    text += "  " + frame["file"].get<std::string>();
    if (frame.contains("line")) text += ":" + frame["line"].dump();
    return text;
  }
  return text + "  (" + frame["module"].get<std::string>() + ")";
}

std::string finding_text(const Json& finding) {
  std::string text = finding["sentence"].get<std::string>() + "\n";
  for (const Json& backtrace : finding["backtraces"]) {
    text += backtrace["label"].get<std::string>() + ":\n";
    for (const Json& frame : backtrace["frames"]) text += "  " + frame_text(frame) + "\n";
  }
  text += "Why: " + finding["why"].get<std::string>() + "\n";
  return text + "To do: " + finding["advice"].get<std::string>() + "\n";
}

// The name of the test case: the place of the finding, so that a list of cases can be read.
std::string case_name(const Json& finding) {
  const Json& backtraces = finding["backtraces"];
  const bool has_place = !backtraces.empty() && !backtraces[0]["frames"].empty();
  return has_place ? frame_text(backtraces[0]["frames"][0])
                   : finding["sentence"].get<std::string>();
}

const std::string kJunitHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
const std::string kJunitTail = "</testsuite>\n</testsuites>\n";

std::string suite_element(size_t tests, size_t failures, size_t errors) {
  return "<testsuite name=\"rocemu check\" tests=\"" + std::to_string(tests) + "\" failures=\"" +
         std::to_string(failures) + "\" errors=\"" + std::to_string(errors) + "\">\n";
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw Failure("cannot write the report of checks to " + file.native());
}

}  // namespace

std::string as_json(const std::vector<FoundOnce>& findings) {
  Json report = {{"version", kSchemaVersion}, {"findings", Json::array()}};
  for (const FoundOnce& found : findings) {
    Json finding = found.finding;
    finding["times"] = found.times;
    report["findings"].push_back(std::move(finding));
  }
  return report.dump(2, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

std::string as_text(const std::vector<FoundOnce>& findings) {
  std::string text;
  for (const FoundOnce& found : findings)
    text += found.finding["name"].get<std::string>() + ": " + finding_text(found.finding) + "\n";
  return text + counts_text(findings) + "\n";
}

std::string as_junit(const std::vector<FoundOnce>& findings) {
  std::string text = kJunitHead + suite_element(findings.empty() ? 1 : findings.size(),
                                                findings.size(), /*errors=*/0);
  if (findings.empty()) {
    text += "<testcase classname=\"rocemu.check\" name=\"no findings\"/>\n";
  }
  for (const FoundOnce& found : findings) {
    const std::string name = escaped(found.finding["name"].get<std::string>());
    text += "<testcase classname=\"rocemu.check." + name + "\" name=\"" +
            escaped(case_name(found.finding)) + "\">\n<failure type=\"" + name + "\" message=\"" +
            escaped(found.finding["sentence"].get<std::string>()) + "\">" +
            escaped(finding_text(found.finding)) + "</failure>\n</testcase>\n";
  }
  return text + kJunitTail;
}

void write_report(const std::filesystem::path& file, const std::vector<FoundOnce>& findings) {
  write(file, file.extension() == ".xml" ? as_junit(findings) : as_json(findings));
}

void write_report_of_none(const std::filesystem::path& file) {
  constexpr const char* kWhy = "the program has not been run to its end";
  if (file.extension() != ".xml") {
    const Json report = {{"version", kSchemaVersion}, {"error", kWhy}};
    return write(file, report.dump(2) + "\n");
  }
  write(file, kJunitHead + suite_element(1, 0, 1) +
                  "<testcase classname=\"rocemu.check\" name=\"the program\">\n<error message=\"" +
                  kWhy + "\"/>\n</testcase>\n" + kJunitTail);
}

}  // namespace rocemu::cli
