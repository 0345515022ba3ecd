#include "verbs_shim/checker/report/report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace rocemu::check;

namespace {

Report example() {
  Report report;
  report.name = "leaks";
  report.verb = "ibv_reg_mr";
  report.program = "/bin/a \"b\"";
  report.process = 7;
  report.thread = 8;
  report.finding.sentence = "An MR \x01\xff is still there.";
  report.finding.why = "Because.";
  report.finding.advice = "Don't.";
  report.finding.objects = {"MR 0x1"};
  SourcePlace known;
  known.function = "main";
  known.file = "/src/a.c";
  known.line = 12;
  known.module = "/bin/a";
  SourcePlace unknown;
  unknown.module = "/lib/b.so";
  unknown.module_offset = 0x20;
  report.backtraces = {{"in ibv_reg_mr", 8, {known, unknown}}};
  return report;
}

}  // namespace

TEST_CASE("a finding as text", "[checker]") {
  const std::string text = as_text(example());
  CHECK(text.starts_with("==7== rocemu check: leaks\n"));
  CHECK(text.find("in ibv_reg_mr, thread 8:\n    #0 main  /src/a.c:12\n    #1 ??  (b.so+0x20)\n") !=
        std::string::npos);
  CHECK(text.find("Why: Because.") != std::string::npos);
  CHECK(text.find("To do: Don't.") != std::string::npos);
}

TEST_CASE("a finding as a line of JSON, whatever is in it", "[checker]") {
  const std::string line = as_json_line(example());
  REQUIRE(line.find('\n') == line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  CHECK(json["name"] == "leaks");
  CHECK(json["program"] == "/bin/a \"b\"");
  CHECK(json["objects"][0] == "MR 0x1");
  CHECK(json["backtraces"][0]["thread"] == 8);
  CHECK(json["backtraces"][0]["frames"][0]["line"] == 12);
  CHECK_FALSE(json["backtraces"][0]["frames"][1].contains("file"));
  CHECK(json["backtraces"][0]["frames"][1]["offset"] == 0x20);
}
