#include "emulator/script/command.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/net/text.h"
#include "base/read_file.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/installation.h"
#include "emulator/cli/process/program.h"
#include "emulator/script/language/parser.h"
#include "emulator/script/live/live_stage.h"
#include "emulator/script/play/player.h"
#include "emulator/script/virtual_time/virtual_stage.h"

namespace rocemu::script {

namespace {

using cli::Failure;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSuffix = ".roce";
constexpr const char* kAgent = "rocemu-script-agent";
constexpr unsigned kMaxSlackMs = 60'000;
constexpr unsigned kMaxTries = 100;

constexpr char kUsageText[] =
    R"(Plays scripts of verbs and frames: against the NIC in virtual time, or against a live one (docs/scripts.md)

Usage: rocemu script [OPTIONS] FILE...
       rocemu script --agent [--device NAME] [--agent-port PORT]

  FILE               a script, or a folder with scripts (*.roce)
  -v                 print the whole exchange of each
  --json             print JSON
  --port PEER        play it live, over UDP/IP, against the NIC that has this address and an agent on it
  --address ADDRESS  with --port: the script's own address (as the kernel chooses)
  --slack MS         with --port: how late things may be, in milliseconds (200)
  --quiet MS         with --port: how long nothing may come until that is believed (half the slack)
  --tries N          with --port: how often to play a script that fails, since its time is real (1)
  --agent-port PORT  the agent's TCP port (4792)
  --agent            be that agent: an ordinary verbs program, to be started where the NIC is
  --device NAME      with --agent: the device (the one that has the address the script is sent to)

Exit codes: 0 all went as written; 1 one did not; 2 one is no script, or a bad command line

Examples:
  rocemu script duplicate_send.roce
  rocemu script -v tests/scripts
  rocemu up --port rocemu0=udp:127.0.0.2 && rocemu exec -- rocemu script --agent &
  rocemu script --port 127.0.0.2 tests/scripts/psn
)";

struct Options {
  std::vector<fs::path> files;
  bool verbose = false;
  bool json = false;
  std::optional<LiveOptions> live;
  unsigned tries = 1;
};

struct Outcome {
  std::string file;
  std::string title;
  std::optional<SyntaxError> no_script;
  Verdict verdict;
  // Failures of the same script, played live, before this verdict.
  std::vector<Verdict> failures_before;
};

IpAddress address_in(const std::string& option, const std::string& text) {
  const auto address = parse_ip_address(text);
  if (!address) throw Failure(option + " is an IP address, not '" + text + "'", cli::kUsage);
  return *address;
}

unsigned number_in(const std::string& option, const std::string& text, unsigned most) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ptr != end || value == 0 || value > most)
    throw Failure(option + " is a number from 1 to " + std::to_string(most), cli::kUsage);
  return value;
}

// Options with a value: all are of a live stage.
void take_option(const std::string& option, const std::string& value, LiveOptions& live,
                 unsigned& tries) {
  if (option == "--port") {
    live.peer = address_in(option, value);
  } else if (option == "--address") {
    live.own = address_in(option, value);
  } else if (option == "--slack") {
    live.slack_ns = TimeNs{number_in(option, value, kMaxSlackMs)} * 1'000'000;
  } else if (option == "--quiet") {
    live.quiet_ns = TimeNs{number_in(option, value, kMaxSlackMs)} * 1'000'000;
  } else if (option == "--tries") {
    tries = number_in(option, value, kMaxTries);
  } else if (option == "--agent-port") {
    live.agent_port = static_cast<uint16_t>(number_in(option, value, 65535));
  } else {
    throw Failure("'" + option + "' is no option; see: rocemu script --help", cli::kUsage);
  }
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  LiveOptions live;
  std::string live_option;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-v") {
      options.verbose = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (!word.starts_with('-')) {
      options.files.emplace_back(word);
    } else if (i + 1 == arguments.size()) {
      throw Failure(word + " needs a value, or is no option; see: rocemu script --help",
                    cli::kUsage);
    } else {
      live_option = word;
      take_option(word, arguments[++i], live, options.tries);
    }
  }
  if (live.peer != IpAddress{}) {
    options.live = live;
  } else if (!live_option.empty()) {
    throw Failure(live_option + " is for scripts that are played live, with --port PEER",
                  cli::kUsage);
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
  std::optional<std::string> text = read_file(file);
  if (!text) throw Failure("cannot read " + file.string(), cli::kUsage);
  return std::move(*text);
}

using MakeStage = std::function<std::unique_ptr<Stage>()>;

Outcome play_file(const fs::path& file, const MakeStage& make_stage, unsigned tries) {
  Outcome outcome;
  outcome.file = file.string();
  try {
    const Script script = parse_script(outcome.file, text_of(file));
    outcome.title = script.title;
    outcome.verdict = play(script, *make_stage());
    while (outcome.verdict.kind == Verdict::Kind::failed && --tries > 0) {
      outcome.failures_before.push_back(std::move(outcome.verdict));
      outcome.verdict = play(script, *make_stage());
    }
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

void print_exchange(const Verdict& verdict) {
  for (const std::string& line : verdict.exchange) std::cout << "  " << line << '\n';
}

void print_difference(const std::string& file, const Verdict& verdict) {
  std::cout << at_text(file, verdict.place) << ": at " << time_text(verdict.at_ns) << '\n'
            << "  expected  " << verdict.expected << '\n'
            << "  instead   " << verdict.came << '\n';
}

void print(const Outcome& outcome, bool verbose) {
  // A failure of a live play may never happen again, so each is shown.
  for (const Verdict& failure : outcome.failures_before) {
    std::cout << "failed, and is played once more  " << outcome.file << '\n';
    print_exchange(failure);
    print_difference(outcome.file, failure);
  }
  std::cout << word_of(outcome) << "  " << outcome.file << '\n';
  const Verdict& verdict = outcome.verdict;
  if (outcome.no_script) {
    std::cout << at_text(outcome.file, outcome.no_script->place()) << ": "
              << outcome.no_script->what() << '\n';
    return;
  }
  if (verbose) std::cout << "  # " << outcome.title << '\n';
  if (verbose || !outcome.failures_before.empty()) print_exchange(verdict);
  if (verdict.kind != Verdict::Kind::ok) print_difference(outcome.file, verdict);
}

void add_difference(Json& json, const Verdict& verdict) {
  json["line"] = verdict.place.line;
  json["column"] = verdict.place.column;
  json["at_ns"] = verdict.at_ns;
  json["expected"] = verdict.expected;
  json["came"] = verdict.came;
}

Json json_of(const Outcome& outcome, bool verbose) {
  const Verdict& verdict = outcome.verdict;
  Json json{{"file", outcome.file}, {"title", outcome.title}, {"result", word_of(outcome)}};
  if (outcome.no_script) {
    json["line"] = outcome.no_script->place().line;
    json["column"] = outcome.no_script->place().column;
    json["message"] = outcome.no_script->what();
  } else if (verdict.kind != Verdict::Kind::ok) {
    add_difference(json, verdict);
  }
  if (verbose) json["exchange"] = verdict.exchange;
  for (const Verdict& failure : outcome.failures_before) {
    Json before{{"exchange", failure.exchange}};
    add_difference(before, failure);
    json["failures_before"].push_back(before);
  }
  return json;
}

[[noreturn]] void become_agent(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{(cli::own_executable().parent_path() / kAgent).string()};
  command.insert(command.end(), arguments.begin() + 1, arguments.end());
  cli::exec_program(command, cli::current_environment());
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  if (std::ranges::any_of(arguments, [](const auto& w) { return w == "--help" || w == "-h"; })) {
    std::cout << kUsageText;
    return cli::kSuccess;
  }
  if (!arguments.empty() && arguments.front() == "--agent") become_agent(arguments);
  const Options options = parse(arguments);
  const MakeStage make_stage = [&]() -> std::unique_ptr<Stage> {
    if (options.live) return std::make_unique<LiveStage>(*options.live);
    return std::make_unique<VirtualStage>();
  };
  Json results = Json::array();
  int code = cli::kSuccess;
  for (const fs::path& file : scripts_of(options.files)) {
    const Outcome outcome = play_file(file, make_stage, options.tries);
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
