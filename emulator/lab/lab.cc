#include "emulator/lab/lab.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <sstream>

#include "emulator/cli/commands.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/program.h"
#include "emulator/cli/process/signals.h"
#include "emulator/fault/grammar.h"
#include "emulator/lab/namespaces.h"
#include "emulator/lab/up.h"

namespace rocemu::lab {
namespace {

using cli::Failure;
using Words = std::span<const std::string>;

constexpr char kUsageText[] =
    R"(Several hosts on this machine, each with its own network, addresses and NIC

Usage: rocemu lab up --hosts N [--link LINK] [--mtu BYTES] [--impair SPEC]... [--network FILE]
                    [--fault SPEC]... [--congestion SPEC]... [--recovery NAME] [--shake NAMES]
                    [--check[=NAMES]] [--name NAME]
       rocemu lab exec [--name NAME] [--share-memory] [--check[=NAMES]] HOST -- PROGRAM [ARGUMENTS]
       rocemu lab status [--name NAME]
       rocemu lab down [--name NAME]

  --hosts N       how many, h1 to hN (2)
  --link LINK     what a NIC's port is: interface (the host's eth0, default) or udp (its addresses)
  --mtu BYTES     of every interface (9000)
  --impair SPEC   what the wire does to all that hosts send, RoCE and TCP alike; or h2:SPEC, h2.rx:SPEC …
  --network FILE  the switches and links between the hosts, h1 being the file's first (docs/networks.md)
  --fault SPEC    what is to go wrong: HOST WHAT [KEY=VALUE]..., or of all (docs/faults.md)
  --congestion SPEC  of every NIC, as of rocemu up; or of one host's, h2=SPEC (docs/congestion.md)
  --recovery NAME  of every NIC, as of rocemu up (docs/loss-recovery.md)
  --shake NAMES   of every NIC, as of rocemu up, or all (docs/shake.md)
  --name NAME     several labs at a time (default)
  --share-memory  as of rocemu exec
  --check[=NAMES]  as of rocemu up (all NICs) and of rocemu exec, which also has --check-report FILE,
                  --check-suppressions FILE and --check-exit-code N here (docs/check.md)

Host hI has the addresses 10.99.0.I and fd99::I on eth0, and knows the others as h1, h2 and so on.

Examples:
  rocemu lab up --hosts 3
  rocemu lab exec h1 -- ib_write_bw &
  rocemu lab exec h2 -- ib_write_bw h1
  rocemu lab down
)";

unsigned number_in(const std::string& option, const std::string& text, unsigned min, unsigned max) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with('0') || std::from_chars(text.data(), end, value).ptr != end || value < min ||
      value > max)
    throw Failure(
        option + " is a number from " + std::to_string(min) + " to " + std::to_string(max),
        cli::kUsage);
  return value;
}

std::string in_one_line(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

// Each is about a host that there is, or about all.
void check_faults(const UpOptions& options) {
  for (const std::string& text : options.faults) {
    const auto parsed = fault::parse_faults(text);
    if (!parsed.error.empty()) throw Failure("--fault: " + parsed.error, cli::kUsage);
    const std::string& host = parsed.faults.front().device;
    bool found = host == fault::kAllDevices;
    for (unsigned i = 1; i <= options.hosts; ++i) found |= host == "h" + std::to_string(i);
    if (!found)
      throw Failure("--fault: there is no host '" + host + "'; write h1 and so on, or all",
                    cli::kUsage);
  }
}

// A value of --congestion, [HOST=]PATH[,KEY=VALUE]... when it names a library, with the path from
// the root: NICs are started from another folder.
std::string with_path_from_root(const std::string& spec) {
  const size_t slash = spec.substr(0, spec.find(',')).find('/');
  if (slash == spec.npos) return spec;
  const size_t begin = spec.rfind('=', slash) + 1;
  const size_t end = std::min(spec.find(',', slash), spec.size());
  return spec.substr(0, begin) +
         std::filesystem::absolute(spec.substr(begin, end - begin)).native() + spec.substr(end);
}

// "--shake=all" as "--shake all", as the other commands take it. --check has a value in this form
// alone.
std::vector<std::string> with_values_apart(Words words) {
  std::vector<std::string> apart;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (!word.starts_with("--") || word.starts_with("--check=") || equals == word.npos) {
      apart.push_back(word);
      continue;
    }
    apart.push_back(word.substr(0, equals));
    apart.push_back(word.substr(equals + 1));
  }
  return apart;
}

UpOptions up_options(Words given) {
  const std::vector<std::string> apart = with_values_apart(given);
  Words words(apart);
  UpOptions options;
  std::map<std::string, std::string> values = {
      {"--hosts", "2"},  {"--link", "interface"}, {"--mtu", "9000"}, {"--name", "default"},
      {"--network", ""}, {"--recovery", ""},      {"--shake", ""}};
  while (!words.empty()) {
    const std::string& option = words[0];
    if (option == "--check" || option.starts_with("--check=")) {
      options.check = option;
      words = words.subspan(1);
      continue;
    }
    if (words.size() == 1)
      throw Failure(option + " needs a value; see: rocemu lab --help", cli::kUsage);
    if (option == "--impair") {
      options.impair.push_back(words[1]);
    } else if (option == "--fault") {
      options.faults.push_back(words[1]);
    } else if (option == "--congestion") {
      options.congestion.push_back(with_path_from_root(words[1]));
    } else if (const auto value = values.find(option); value != values.end()) {
      value->second = words[1];
    } else {
      throw Failure("'" + option + "' is no option of lab up; see: rocemu lab --help", cli::kUsage);
    }
    words = words.subspan(2);
  }
  const std::string& link = values["--link"];
  options.hosts = number_in("--hosts", values["--hosts"], 1, 64);
  options.mtu_bytes = number_in("--mtu", values["--mtu"], 1280, 65535);
  if (link != "interface" && link != "udp")
    throw Failure("--link is interface or udp", cli::kUsage);
  options.udp = link == "udp";
  options.name = values["--name"];
  options.recovery = values["--recovery"];
  options.shake = values["--shake"];
  // The wire is started from another folder.
  if (const std::string& file = values["--network"]; !file.empty())
    options.network = std::filesystem::absolute(file);
  require_lab_name(options.name);
  check_faults(options);
  return options;
}

int bring_up(Words words) {
  const UpOptions options = up_options(words);
  try {
    up(options);
  } catch (const cli::Interrupted&) {
    return cli::kSignalBase + SIGINT;
  }
  std::cout << "lab '" << options.name
            << "' is up: " << in_one_line(LabDir::find(options.name).hosts()) << '\n';
  return cli::kSuccess;
}

// Takes "--name NAME" off the front; empty when it is not there.
std::string take_name(Words& words) {
  if (words.empty() || words[0] != "--name") return {};
  if (words.size() == 1) throw Failure("--name needs a value", cli::kUsage);
  const std::string name = words[1];
  require_lab_name(name);
  words = words.subspan(2);
  return name;
}

// Takes off the front what `rocemu exec` has as well: --share-memory, and all about checks.
std::vector<std::string> take_exec_options(Words& words) {
  std::vector<std::string> taken;
  while (!words.empty() && (words[0] == "--share-memory" || words[0].starts_with("--check"))) {
    const bool has_value =
        words[0].starts_with("--check-") && words[0].find('=') == std::string::npos;
    const std::size_t count = std::min<std::size_t>(has_value ? 2 : 1, words.size());
    taken.insert(taken.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    words = words.subspan(count);
  }
  return taken;
}

int exec(Words words) {
  const std::string name = take_name(words);
  const std::vector<std::string> handed_on = take_exec_options(words);
  if (words.size() < 3 || words[1] != "--")
    throw Failure("write: rocemu lab exec HOST -- PROGRAM", cli::kOwnFailure);
  const LabDir dir = LabDir::find(name);
  dir.require_reach();
  const std::string& host = words[0];
  const std::vector<std::string> hosts = dir.hosts();
  if (std::ranges::find(hosts, host) == hosts.end())
    throw Failure("there is no host '" + host + "'; there are: " + in_one_line(hosts),
                  cli::kOwnFailure);
  if (!dir.lives(host))
    throw Failure(
        "host " + host + " has ended; end the lab with: rocemu lab down --name " + dir.name(),
        cli::kOwnFailure);
  std::vector<std::string> command = {"exec", "--name", host};
  command.insert(command.end(), handed_on.begin(), handed_on.end());
  command.insert(command.end(), words.begin() + 1, words.end());
  ::setenv("ROCEMU_LAB", dir.path().c_str(), /*overwrite=*/1);
  enter(dir, host);
  become_rocemu(dir, command);
}

// The lab of a command that has no options but the name.
LabDir only_lab(const std::string& command, Words words) {
  const std::string name = take_name(words);
  if (!words.empty())
    throw Failure("'" + words[0] + "' is no option of lab " + command, cli::kUsage);
  LabDir dir = LabDir::find(name);
  dir.require_reach();
  return dir;
}

int status(Words words) {
  const LabDir dir = only_lab("status", words);
  for (const std::string& host : dir.hosts()) {
    const auto address = output_of([&] {
      enter(dir, host);
      cli::exec_program({"ip", "-brief", "address", "show", "dev", "eth0"},
                        cli::current_environment());
    });
    std::cout << host << ": "
              << address.value_or(dir.lives(host)
                                      ? "ip, of the package iproute2, does not know its eth0\n"
                                      : "ended\n");
    const auto nic = output_of([&] {
      enter(dir, host);
      become_rocemu(dir, {"status", "--name", host});
    });
    std::istringstream lines(nic.value_or("its NIC is not up"));
    for (std::string line; std::getline(lines, line);)
      if (line.find_first_not_of(' ') != std::string::npos) std::cout << "  " << line << '\n';
  }
  return cli::kSuccess;
}

int down(Words words) {
  const LabDir dir = only_lab("down", words);
  tear_down(dir);
  std::cout << "lab '" << dir.name() << "' is down\n";
  return cli::kSuccess;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  const Words words = arguments;
  const auto options_end = std::ranges::find(words, "--");
  if (std::any_of(words.begin(), options_end,
                  [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    std::cout << kUsageText;
    return cli::kSuccess;
  }
  const std::string command = words.empty() ? "" : words[0];
  const Words rest = words.empty() ? words : words.subspan(1);
  if (command == "up") return bring_up(rest);
  if (command == "exec") return exec(rest);
  if (command == "status") return status(rest);
  if (command == "down") return down(rest);
  std::cerr << kUsageText;
  return cli::kUsage;
}

}  // namespace rocemu::lab
