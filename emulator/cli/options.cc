#include "emulator/cli/options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "emulator/cli/commands.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/state_dir.h"
#include "emulator/cli/top/columns.h"
#include "verbs_shim/abi/control.h"

// A header of its own in newer CLI11 (2.6.1), part of Validators.hpp before.
#if __has_include(<CLI/ExtraValidators.hpp>)
#include <CLI/ExtraValidators.hpp>
#endif

namespace rocemu::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  rocemu run -- ibv_devinfo
  rocemu run --server 'ib_write_bw -d rocemu0' -- ib_write_bw -d rocemu1 localhost
  rocemu run --impair loss=1%,delay=20us -- ./my_test
  rocemu run --check -- ./my_test
  rocemu up --devices 3 && rocemu exec -- ibv_devices && rocemu down
  rocemu up --port rocemu0=eth0      # on a network interface, see docs/ports.md

Exit codes:
  0 success   1 failure   2 bad command line or configuration
  3 up: is up already; status, metrics, top, down, env, link, fault, findings, trace: is not up
  run and exec hand on the program's own (128 + N when signal N ended it), or
  66 --check found something (findings, too)   125 rocemu failed   126 the program
  cannot be executed   127 it was not found)";

constexpr const char* kRunFooter = R"(
The NIC is made for this one command, is seen by it and its children alone, and is gone when it ends.

With --server two programs use it. The exit code is PROGRAM's or, where that is 0, the server's, which
has 10 s to end after PROGRAM; then it is ended, and that counts as success.

Examples:
  rocemu run -- ibv_devinfo -v
  rocemu run --devices 3 -- ./my_test
  rocemu run --impair 'loss=1%,delay=20us,jitter=5us,reorder=0.5%,seed=7' -- ./my_test
  rocemu run --impair rocemu0.tx:rate=10gbit --impair rocemu1.rx:loss=100% -- ./my_test
  rocemu run --shake -- ./my_test
  rocemu run --shake=-late-acks,seed=7 -- ./my_test
  rocemu run --pcap wire.pcap --server 'ib_send_bw -d rocemu0' -- ib_send_bw -d rocemu1 localhost)";

constexpr const char* kUpFooter = R"(
Examples:
  rocemu up
  rocemu up --name lab --devices 4 --config lab.toml
  rocemu up --impair loss=0.1%)";

constexpr const char* kExecFooter = R"(
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu exec -- ibv_devinfo -v
  rocemu exec --name lab -- ib_send_lat -d rocemu0)";

constexpr const char* kStatusFooter = R"(
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu status
  rocemu status --name lab --json)";

constexpr const char* kMetricsFooter = R"(
Counters of all devices, and of 256 QPs of each at most, in Prometheus' text format (docs/counters.md).
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu metrics
  rocemu metrics --name lab | grep ^rocemu_qp_)";

constexpr const char* kTopFooter = R"(
Keys are those of htop: F1 or h shows them. With --once it prints one picture of the NIC, for scripts: its rates
are over --interval, and with --json docs/top.md says what is in it.
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu top
  rocemu top --name lab --sort retransmissions --filter ib_write_bw
  rocemu top --once --interval 5
  rocemu top --once --json)";

constexpr const char* kDownFooter = R"(
Without --name: the NIC of $ROCEMU_DIR if that is set and `rocemu up` has started it, else the one named 'default'.

Example:
  rocemu down --name lab)";

constexpr const char* kEnvFooter = R"-(
Example:
  eval "$(rocemu env --name lab)"    # this shell's programs see the NIC from now on)-";

constexpr const char* kLinkFooter = R"(
A device's link has two directions: tx is what the device sends, rx is what is sent to it.

Examples:
  rocemu link set rocemu0 loss=1%,delay=20us
  rocemu link show)";

constexpr const char* kLinkSetFooter = R"(
DEVICE is a device or all. Direction is tx, rx or both: tx when left out, but none without a direction
clears both. SPEC replaces what was set; it is none or some of these, with commas between:
  loss=1%      dup=0.1%     reorder=0.5%/50us  corrupt=10ppm   delay=20us   jitter=5us
  rate=10gbit  queue=1mb    outage=5ms/1s      seed=7
Units are always written: % ppm, ns us ms s, bit kbit mbit gbit, b kb mb (docs/impairments.md).
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu link set rocemu0 loss=1%,delay=20us,jitter=5us
  rocemu link set --name lab rocemu1 rx loss=100%
  rocemu link set all none)";

constexpr const char* kLinkShowFooter = R"(
Counts are of frames since the spec was set.
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu link show
  rocemu link show rocemu0 --json)";

constexpr const char* kFindingsFooter = R"(
Of programs that ran by `rocemu exec`, or in an environment of `rocemu env`, over a NIC that was started with
--check. Leaks of a program are there when it has ended.
Without --name and --socket: the NIC of $ROCEMU_DIR if that is set, else the one named 'default'.

Examples:
  rocemu findings --name lab
  rocemu findings --check-report findings.xml; rocemu down)";

constexpr const char* kProgramSeparator = "--";
constexpr const char* kFaultWords = "DEVICE WHAT [KEY=VALUE]... | list | clear ID|all";
constexpr const char* kLinkSetWords = "DEVICE [tx|rx|both] SPEC";
constexpr int kLinkSetLeastWords = 2;
constexpr int kLinkSetMostWords = 3;

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "set") return "Usage: " + name + " [OPTIONS] " + kLinkSetWords + "\n";
    if (app->get_name() == "fault") return "Usage: " + name + " [OPTIONS] " + kFaultWords + "\n";
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_name() != "run" && app->get_name() != "exec") return usage;
    usage.erase(usage.find_last_not_of('\n') + 1);
    return usage + " -- PROGRAM [ARGUMENTS]\n";
  }
};

// Footers are in columns, which newer CLI11 (2.6.1) would fill anew.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); })
    formatter.enable_footer_formatting(false);
}

class Parser {
 public:
  Parser() {
    const auto formatter = std::make_shared<HelpFormatter>();
    keep_lines(*formatter);
    app_.formatter(formatter);
    app_.require_subcommand(1);
    app_.set_version_flag("--version", version_text);
    app_.footer(kFooter);
    add_run();
    add_up();
    add_exec();
    add_status();
    add_metrics();
    add_top();
    add_down();
    add_env();
    add_link();
    add_fault();
    add_findings();
    add_version();
    // These have command lines of their own: emulator/lab, emulator/experiment, emulator/script.
    app_.add_subcommand("lab", "Several hosts on this machine, each with its own network and NIC");
    app_.add_subcommand("sim", "An experiment with up to thousands of NICs in virtual time");
    app_.add_subcommand("trace", "Trace a NIC that is up, and show traces");
    app_.add_subcommand("script", "Play scripts of verbs and frames against the NIC");
  }

  Options parse(const std::vector<std::string>& arguments) {
    const auto separator = std::ranges::find(arguments, kProgramSeparator);
    if (separator != arguments.end()) options_.program.assign(separator + 1, arguments.end());
    // CLI11 wants them last first.
    std::vector<std::string> reversed(std::make_reverse_iterator(separator), arguments.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      throw PrintAndExit{app_.help()};
    } catch (const CLI::CallForAllHelp&) {
      throw PrintAndExit{app_.help("", CLI::AppFormatMode::All)};
    } catch (const CLI::CallForVersion& version) {
      throw PrintAndExit{std::string(version.what()) + "\n"};
    } catch (const CLI::ExtrasError& error) {
      const std::string name = chosen() != nullptr ? name_of(chosen()) : "";
      // The word may stand before the command, and is none of its own then.
      if ((name != "run" && name != "exec") || chosen()->remaining().empty()) fail(error.what());
      fail("'" + chosen()->remaining().front() + "' is no option of " + name +
           ", and a program has -- in front of it");
    } catch (const CLI::RequiredError&) {
      if (chosen() != nullptr) fail("link needs set or show");
      const bool given = !arguments.empty() && !arguments[0].starts_with('-');
      fail(given ? "'" + arguments[0] + "' is no command" : "which command?");
    } catch (const CLI::ParseError& error) {
      fail(error.what());
    }
    options_.command = std::ranges::find(commands_, chosen(), [](const auto& entry) {
                         return entry.second;
                       })->first;
    if (!options_.name.empty() || name_was_given()) require_valid_name(options_.name);
    check_program(separator != arguments.end());
    options_.nic.check = options_.check.wanted();
    if (!options_.check.suppressions.empty())
      options_.check.suppressions = std::filesystem::absolute(options_.check.suppressions);
    check_link();
    check_checks();
    if (options_.command == Command::kFault && options_.fault.empty())
      fail(std::string("what is to go wrong? write: rocemu fault ") + kFaultWords);
    return options_;
  }

 private:
  CLI::App* add(Command command, const char* name, const char* description, const char* footer) {
    return add(command, &app_, name, description, footer);
  }

  CLI::App* add(Command command, CLI::App* parent, const char* name, const char* description,
                const char* footer) {
    CLI::App* sub = parent->add_subcommand(name, description);
    sub->footer(footer);
    commands_.emplace_back(command, sub);
    return sub;
  }

  // In the order in which --help shows them.
  void add_nic_options(CLI::App* sub) {
    add_ports(sub);
    add_capture(sub);
    add_trace(sub);
    add_conditions(sub);
    add_transport(sub);
    add_daemon(sub);
  }

  void add_ports(CLI::App* sub) {
    sub->add_option("--devices", options_.nic.devices,
                    "Number of devices, rocemu0 and on (2, or as many as --port names)")
        ->option_text("N")
        ->check([](const std::string& text) {
          const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
          return is_number && text.find_first_not_of('0') != std::string::npos
                     ? std::string()
                     : "a number from 1 on is wanted, not '" + text + "'";
        });
    sub->add_option(
           "--port", options_.nic.ports,
           "What a device's port is linked to: DEVICE=switch (inside the NIC), =IFNAME (a "
           "network interface), =udp:ADDRESS, or a device of DPDK: =vdev:SPEC[@ADDRESS/PREFIX], "
           "=pci:BDF[@ADDRESS/PREFIX] (docs/ports.md); several times for several devices")
        ->option_text("DEVICE=PORT")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_capture(CLI::App* sub) {
    sub->add_option("--pcap", options_.nic.pcap,
                    "Write every frame on the wire to this file; FILE.pcapng says what the NIC "
                    "knows of each")
        ->option_text("FILE");
    sub->add_option("--pcap-limit-mb", options_.nic.pcap_limit_mb,
                    "Record no more than so many megabytes there")
        ->option_text("N");
  }

  // These say what the network and the devices do to programs.
  void add_conditions(CLI::App* sub) {
    sub->add_option("--network", options_.nic.network,
                    "TOML file with the switches and links between the devices "
                    "(docs/networks.md)")
        ->option_text("FILE")
        ->check(CLI::ExistingFile);
    sub->add_option("--impair", options_.nic.impair,
                    "Impairments of what every device sends, or of one link: "
                    "[DEVICE[.tx|.rx|.both]:]SPEC, SPEC like loss=1%,delay=20us "
                    "(docs/impairments.md); several times for several links")
        ->option_text("SPEC")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    sub->add_option("--fault", options_.nic.faults,
                    "What is to go wrong, and when: DEVICE WHAT [KEY=VALUE]..., like 'rocemu0 "
                    "port-down after=2s for=1s' (rocemu fault --help); several times for several "
                    "faults")
        ->option_text("SPEC")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_transport(CLI::App* sub) {
    sub->add_option("--congestion", options_.nic.congestion,
                    "Congestion control of every device, or of one: "
                    "[DEVICE=]NAME[:PRESET][,KEY=VALUE]..., like dcqcn:paper,rpg_ai_rate=40 "
                    "(docs/congestion.md); several times for several devices")
        ->option_text("SPEC")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    sub->add_option("--recovery", options_.nic.recovery,
                    "How losses are made good: go-back-n, or selective-repeat with peers that "
                    "have it (docs/loss-recovery.md)")
        ->option_text("NAME")
        ->check(CLI::IsMember({"go-back-n", "selective-repeat"}));
    sub->add_option("--shake", options_.nic.shake,
                    "Do what the specification permits and hardware seldom does: all of it, or "
                    "[NAME|-NAME],...[,strength=PERCENT][,seed=NUMBER] (docs/shake.md)")
        ->option_text("[=NAMES]")
        ->expected(0, 1)
        ->default_str("all");
  }

  void add_daemon(CLI::App* sub) {
    sub->add_option("--metrics", options_.nic.metrics,
                    "Serve the counters to Prometheus, over HTTP at /metrics: ADDRESS:PORT, PORT "
                    "on loopback, or the path of a Unix socket (docs/counters.md)")
        ->option_text("ADDRESS");
    sub->add_option("--config", options_.nic.config,
                    "TOML file with these options and more (docs/configuration.md)")
        ->option_text("FILE")
        ->check(CLI::ExistingFile);
    sub->add_option("--log-level", options_.nic.log_level, "How much the NIC logs")
        ->option_text("LEVEL");
  }

  void add_trace(CLI::App* sub) {
    CLI::Option* const whole =
        sub->add_option("--trace", options_.nic.trace,
                        "Write what becomes of each request and packet to this file, for rocemu "
                        "trace show (docs/seeing.md)")
            ->option_text("FILE");
    sub->add_option("--trace-on-error", options_.nic.trace_on_error,
                    "Write what led to it there when a QP fails or a program dies")
        ->option_text("FILE")
        ->excludes(whole);
    sub->add_option("--trace-last", options_.nic.trace_last,
                    "How many of the last events of a device lead to an error, with "
                    "--trace-on-error (65536)")
        ->option_text("N");
    sub->add_option("--trace-filter", options_.nic.trace_filter,
                    "Trace these alone: device=NAME,qp=QPN,program=NAME|PID, each as often as "
                    "wanted")
        ->option_text("KEY=VALUE,...");
    sub->add_option("--trace-limit-mb", options_.nic.trace_limit_mb,
                    "Let that file have no more than so many megabytes (1074)")
        ->option_text("N");
  }

  void add_name(CLI::App* sub) {
    name_options_.push_back(
        sub->add_option("--name", options_.name, "The NIC's name (default)")->option_text("NAME"));
  }

  void add_socket(CLI::App* sub) {
    sub->add_option("--socket", options_.socket, "The NIC's nic.sock, instead of its name")
        ->option_text("PATH")
        ->excludes(name_options_.back());
  }

  void add_share_memory(CLI::App* sub) {
    sub->add_flag("--share-memory", options_.share_memory,
                  "Let the NIC map what programs register: faster; docs/performance.md, 'Memory "
                  "that the NIC maps', says what changes");
  }

  void add_check(CLI::App* sub) {
    sub->add_option(
           "--check", options_.check.names,
           "Report what programs do wrong, as a sanitizer does: all checks, those that are "
           "named, or with -NAME all but one (docs/check.md)")
        ->option_text("[=NAMES]")
        ->expected(0, 1)
        ->default_str("all")
        ->check([](const std::string& names) {
          const std::string unknown = unknown_check(names);
          return unknown.empty() ? std::string() : "there is no check '" + unknown + "'";
        });
    sub->add_option("--check-suppressions", options_.check.suppressions,
                    "Findings that are not to be reported, NAME:WHERE a line; WHERE is a function, "
                    "file or module")
        ->option_text("FILE")
        ->check(CLI::ExistingFile);
  }

  void add_check_report(CLI::App* sub) {
    sub->add_option("--check-report", options_.check.report,
                    "Write the findings to this file: JUnit XML when it is called .xml, else JSON")
        ->option_text("FILE");
    sub->add_option("--check-exit-code", options_.check.exit_code,
                    "The exit code when there were findings (66); 0: the program's own")
        ->option_text("N")
        ->check(CLI::Range(0, 255));
  }

  CLI::Option* add_json(CLI::App* sub) {
    return sub->add_flag("--json", options_.json, "Print JSON");
  }

  void add_run() {
    CLI::App* sub = add(Command::kRun, "run", "Run a program with a NIC of its own", kRunFooter);
    add_nic_options(sub);
    sub->add_flag("--keep-log", options_.keep_log,
                  "Leave the NIC's log behind in ./rocemu-PID.log");
    sub->add_option(
           "--server", options_.server,
           "A command of the shell that is started first; PROGRAM starts when it listens, by "
           "TCP or by the NIC's connection manager. Its output goes to standard error, with "
           "[server] in front")
        ->option_text("COMMAND")
        ->check([](const std::string& text) {
          return text.empty() ? std::string("a command is missing") : std::string();
        });
    add_share_memory(sub);
    add_check(sub);
    add_check_report(sub);
  }

  void add_up() {
    CLI::App* sub = add(Command::kUp, "up", "Start a NIC in the background", kUpFooter);
    add_name(sub);
    add_nic_options(sub);
    add_check(sub);
    add_json(sub);
  }

  void add_exec() {
    CLI::App* sub = add(Command::kExec, "exec", "Run a program over a NIC that is up", kExecFooter);
    add_name(sub);
    add_socket(sub);
    add_share_memory(sub);
    add_check(sub);
    add_check_report(sub);
  }

  void add_status() {
    CLI::App* sub =
        add(Command::kStatus, "status", "Show a NIC's devices, addresses, objects", kStatusFooter);
    add_name(sub);
    add_socket(sub);
    add_json(sub);
  }

  void add_metrics() {
    CLI::App* sub =
        add(Command::kMetrics, "metrics", "Print a NIC's counters for Prometheus", kMetricsFooter);
    add_name(sub);
    add_socket(sub);
  }

  void add_top() {
    CLI::App* sub =
        add(Command::kTop, "top", "Show what happens in a NIC: devices, programs, QPs", kTopFooter);
    add_name(sub);
    add_socket(sub);
    TopOptions& top = options_.top;
    auto* const once =
        sub->add_flag("--once", top.once, "Print it once, as text, instead of on a screen");
    add_json(sub)->needs(once);
    sub->add_option("--interval", top.interval_s, "Seconds from one picture to the next (1)")
        ->option_text("SECONDS")
        ->check(CLI::Range(0.1, 3600.0));
    sub->add_option("--sort", top.sort, "Sort QPs by this column (tx): " + columns_of_top())
        ->option_text("COLUMN")
        ->check([](const std::string& name) {
          const std::vector<std::string> names = top::qp_column_ids();
          return std::ranges::find(names, name) != names.end()
                     ? std::string()
                     : "there is no column '" + name + "'; there are " + columns_of_top();
        });
    sub->add_flag("--reverse", top.reverse, "Sort the other way around: the smallest first");
    sub->add_option("--filter", top.filter, "Show QPs with this text alone, in any column")
        ->option_text("TEXT");
  }

  static std::string columns_of_top() {
    std::string text;
    for (const std::string& id : top::qp_column_ids()) text += (text.empty() ? "" : ", ") + id;
    return text;
  }

  void add_down() { add_name(add(Command::kDown, "down", "End a NIC that is up", kDownFooter)); }

  void add_env() {
    CLI::App* sub =
        add(Command::kEnv, "env", "Print the environment as shell commands", kEnvFooter);
    add_name(sub);
    add_socket(sub);
  }

  void add_link() {
    CLI::App* link = app_.add_subcommand("link", "Set or show impairments while a NIC is up");
    link->footer(kLinkFooter);
    link->require_subcommand(1);
    CLI::App* set = add(Command::kLinkSet, link, "set", "Set a link's impairments", kLinkSetFooter);
    add_name(set);
    add_socket(set);
    set->add_option("words", options_.link)->group("")->expected(0, -1);
    CLI::App* show = add(Command::kLinkShow, link, "show", "Show impairments", kLinkShowFooter);
    add_name(show);
    add_socket(show);
    add_json(show);
    show->add_option("DEVICE", options_.link, "This device alone")
        ->option_text(" ")
        ->expected(0, 1);
  }

  void add_fault() {
    const std::string footer = fault_help();
    CLI::App* fault =
        add(Command::kFault, "fault", "Let something go wrong while a NIC is up", footer.c_str());
    add_name(fault);
    add_socket(fault);
    add_json(fault);
    fault->add_option("words", options_.fault)->group("")->expected(0, -1);
  }

  void add_findings() {
    CLI::App* sub = add(Command::kFindings, "findings",
                        "Show what the checks of a NIC have found until now", kFindingsFooter);
    add_name(sub);
    add_socket(sub);
    add_json(sub);
    add_check_report(sub);
  }

  void add_version() { add_json(add(Command::kVersion, "version", "Print the version", "")); }

  // The innermost of the commands that were given.
  const CLI::App* chosen() const {
    const CLI::App* innermost = nullptr;
    std::vector<CLI::App*> parsed = app_.get_subcommands();
    while (!parsed.empty()) {
      innermost = parsed.front();
      parsed = innermost->get_subcommands();
    }
    return innermost;
  }

  // "run", "link set"
  std::string name_of(const CLI::App* command) const {
    const CLI::App* parent = command->get_parent();
    return (parent == &app_ ? "" : name_of(parent) + " ") + command->get_name();
  }

  bool name_was_given() const {
    return std::ranges::any_of(name_options_,
                               [](const CLI::Option* option) { return option->count() > 0; });
  }

  void check_program(bool separated) const {
    if (!hands_on_status(options_.command)) {
      if (separated) fail(name_of(chosen()) + " runs no program, so no -- is expected");
    } else if (options_.program.empty() || options_.program[0].empty()) {
      fail("which program? write: rocemu " + chosen()->get_name() + " [OPTIONS] -- PROGRAM");
    }
  }

  void check_link() const {
    if (options_.command != Command::kLinkSet) return;
    if (options_.link.size() < kLinkSetLeastWords || options_.link.size() > kLinkSetMostWords)
      fail(std::string("what is to be set? write: rocemu link set ") + kLinkSetWords);
  }

  // `exec` may have them from the NIC.
  void check_checks() const {
    const CheckOptions& given = options_.check;
    if (options_.command != Command::kRun || given.wanted()) return;
    if (!given.report.empty() || !given.suppressions.empty() ||
        given.exit_code != CheckOptions{}.exit_code)
      fail("nothing is checked without --check, which the other options of checks are about");
  }

  [[noreturn]] void fail(std::string message) const {
    std::ranges::replace(message, '\n', ' ');
    const CLI::App* sub = chosen();
    const bool handing_on =
        sub != nullptr && (sub->get_name() == "run" || sub->get_name() == "exec");
    throw Failure(message + "; see: rocemu " +
                      (sub != nullptr ? name_of(sub) + " " : std::string()) + "--help",
                  handing_on ? kOwnFailure : kUsage);
  }

  CLI::App app_{"A software RoCEv2 NIC: unmodified verbs programs, no RDMA hardware, no root",
                "rocemu"};
  Options options_;
  std::vector<std::pair<Command, CLI::App*>> commands_;
  std::vector<CLI::Option*> name_options_;
};

}  // namespace

std::string Options::name_or_default() const {
  return name.empty() ? std::string(kDefaultName) : name;
}

bool hands_on_status(Command command) {
  return command == Command::kRun || command == Command::kExec;
}

std::string version_text() {
  return std::string("rocemu ") + ROCEMU_VERSION + " (ABI " + std::to_string(ROCEMU_ABI_VERSION) +
         ")";
}

Options parse_options(const std::vector<std::string>& arguments) {
  return Parser().parse(arguments);
}

}  // namespace rocemu::cli
