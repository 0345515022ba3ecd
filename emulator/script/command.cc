#include "emulator/script/command.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/script/language/parser.h"
#include "emulator/script/play/player.h"
#include "emulator/script/virtual_time/virtual_stage.h"

namespace rocemu::script {

namespace {

using cli::Failure;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSuffix = ".roce";

constexpr char kUsageText[] =
    R"(Plays scripts of verbs and frames against the NIC, in virtual time (docs/scripts.md)

Usage: rocemu script [OPTIONS] FILE...

  FILE      a script, or a folder with scripts (*.roce)
  -v        print the whole exchange of each
  --json    print JSON

Exit codes: 0 all went as written; 1 one did not; 2 one is no script, or a bad command line

Examples:
  rocemu script duplicate_send.roce
  rocemu script -v tests/scripts
)";

struct Options {
  std::vector<fs::path> files;
  bool verbose = false;
  bool json = false;
};

struct Outcome {
  std::string file;
  std::string title;
  std::optional<SyntaxError> no_script;
  Verdict verdict;
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (const std::string& word : arguments) {
    if (word == "-v") {
      options.verbose = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (word.starts_with('-')) {
      throw Failure("'" + word + "' is no option; see: rocemu script --help", cli::kUsage);
    } else {
      options.files.emplace_back(word);
    }
  }
  if (options.files.empty())
    throw Failure("which script? write: rocemu script FILE...", cli::kUsage);
  return options;
}

// Folders become the scripts in them, by name.
std::vector<fs::path> scripts_of(const std::vector<fs::path>& files) {
  std::vector<fs::path> scripts;
  for (const fs::path& file : files) {
    if (!fs::is_directory(file)) {
      scripts.push_back(file);
      continue;
    }
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(file))
      if (entry.path().extension() == kSuffix) found.push_back(entry.path());
    if (found.empty())
      throw Failure("there is no script (*.roce) in " + file.string(), cli::kUsage);
    std::ranges::sort(found);
    scripts.insert(scripts.end(), found.begin(), found.end());
  }
  return scripts;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file)) throw Failure("cannot read " + file.string(), cli::kUsage);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

using MakeStage = std::function<std::unique_ptr<Stage>()>;

Outcome play_file(const fs::path& file, const MakeStage& make_stage) {
  Outcome outcome;
  outcome.file = file.string();
  try {
    const Script script = parse_script(outcome.file, text_of(file));
    outcome.title = script.title;
    outcome.verdict = play(script, *make_stage());
  } catch (const SyntaxError& error) {
    outcome.no_script = error;
  }
  return outcome;
}

const char* word_of(const Outcome& outcome) {
  if (outcome.no_script) return "no script";
  switch (outcome.verdict.kind) {
    case Verdict::Kind::ok:
      return "ok";
    case Verdict::Kind::failed:
      return "failed";
    case Verdict::Kind::not_applicable:
      break;
  }
  return "not applicable";
}

std::string at_text(const std::string& file, Place place) {
  return file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

void print(const Outcome& outcome, bool verbose) {
  std::cout << word_of(outcome) << "  " << outcome.file << '\n';
  const Verdict& verdict = outcome.verdict;
  if (outcome.no_script) {
    std::cout << at_text(outcome.file, outcome.no_script->place()) << ": "
              << outcome.no_script->what() << '\n';
    return;
  }
  if (verbose) {
    std::cout << "  # " << outcome.title << '\n';
    for (const std::string& line : verdict.exchange) std::cout << "  " << line << '\n';
  }
  if (verdict.kind == Verdict::Kind::ok) return;
  std::cout << at_text(outcome.file, verdict.place) << ": at " << time_text(verdict.at_ns) << '\n'
            << "  expected  " << verdict.expected << '\n'
            << "  instead   " << verdict.came << '\n';
}

Json json_of(const Outcome& outcome, bool verbose) {
  const Verdict& verdict = outcome.verdict;
  Json json{{"file", outcome.file}, {"title", outcome.title}, {"result", word_of(outcome)}};
  if (outcome.no_script) {
    json["line"] = outcome.no_script->place().line;
    json["column"] = outcome.no_script->place().column;
    json["message"] = outcome.no_script->what();
  } else if (verdict.kind != Verdict::Kind::ok) {
    json["line"] = verdict.place.line;
    json["column"] = verdict.place.column;
    json["at_ns"] = verdict.at_ns;
    json["expected"] = verdict.expected;
    json["came"] = verdict.came;
  }
  if (verbose) json["exchange"] = verdict.exchange;
  return json;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  if (std::ranges::any_of(arguments, [](const auto& w) { return w == "--help" || w == "-h"; })) {
    std::cout << kUsageText;
    return cli::kSuccess;
  }
  const Options options = parse(arguments);
  const MakeStage make_stage = [] { return std::make_unique<VirtualStage>(); };
  Json results = Json::array();
  int code = cli::kSuccess;
  for (const fs::path& file : scripts_of(options.files)) {
    const Outcome outcome = play_file(file, make_stage);
    if (outcome.no_script) {
      code = cli::kUsage;
    } else if (outcome.verdict.kind == Verdict::Kind::failed) {
      code = std::max<int>(code, cli::kFailure);
    }
    if (options.json) {
      results.push_back(json_of(outcome, options.verbose));
    } else {
      print(outcome, options.verbose);
    }
  }
  if (options.json) std::cout << Json{{"scripts", results}}.dump(2) << '\n';
  return code;
}

}  // namespace rocemu::script
