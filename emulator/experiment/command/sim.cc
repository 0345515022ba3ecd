#include "emulator/experiment/command/sim.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "emulator/cli/options.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/experiment/command/progress.h"
#include "emulator/experiment/command/stop_request.h"
#include "emulator/experiment/command/sweep.h"
#include "emulator/experiment/results/summary.h"
#include "emulator/experiment/results/write_results.h"
#include "emulator/experiment/run.h"
#include "emulator/experiment/settings/read_experiment.h"

namespace rocemu::experiment {

namespace {

using cli::Failure;

constexpr const char* kFooter = R"(
The file says network, NICs, workloads and duration (docs/simulator.md). DIR gets
  flows.csv  summary.json  queues.csv  rates.csv  pauses.csv  and plots (*.svg)
The same file and seed give the same bytes in all of them, on any machine.

Ctrl-C ends it with what there is: summary.json says "partial": true, and the exit code is 130.

With --sweep there is a directory for each point, DIR/KEY=VALUE, and as many run at a time as there
are cores. --commands prints the commands instead, one a line, for GNU parallel or a Slurm array.

Examples:
  rocemu sim incast.toml --out incast
  rocemu sim incast.toml --out incast --set workload.burst.senders=16 --set seed=2
  rocemu sim load.toml --out load --sweep workload.background.load=30%,50%,70% --sweep seed=1,2,3
  rocemu sim load.toml --out load --sweep seed=1,2,3 --commands | parallel

Exit codes:
  0 success   1 failure   2 bad command line or experiment   128 + N when signal N ended it)";

struct Options {
  std::filesystem::path experiment;
  std::filesystem::path out;
  std::vector<std::string> settings;
  std::vector<std::string> sweeps;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool commands = false;
  bool quiet = false;
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  CLI::App app{"An experiment in virtual time: a network, NICs and workloads, as fast as can be",
               "rocemu sim"};
  app.footer(kFooter);
  app.add_option("EXPERIMENT", options.experiment, "TOML file (docs/simulator.md)")
      ->option_text(" ")
      ->required();
  app.add_option("--out", options.out, "Where the results go; it is made")
      ->option_text("DIR")
      ->required();
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* text,
                            const char* help) {
    app.add_option(name, list, help)
        ->option_text(text)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add_list("--set", options.settings, "KEY=VALUE", "Another value than the file's, or one more");
  add_list("--sweep", options.sweeps, "KEY=A,B,...", "Once for each value; several keys multiply");
  app.add_flag("--commands", options.commands, "Print the commands of a sweep and run none");
  app.add_option("--jobs", options.jobs, "Points of a sweep at a time (as many as cores)")
      ->option_text("N")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--quiet", options.quiet, "No progress and no summary");
  try {
    // CLI11 wants them last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    throw cli::PrintAndExit{app.help()};
  } catch (const CLI::ParseError& error) {
    throw Failure(std::string(error.what()) + "; see: rocemu sim --help", cli::kUsage);
  }
  return options;
}

Experiment read(const Options& options, const std::vector<std::string>& more = {}) {
  std::vector<Override> overrides;
  for (const auto* settings : {&options.settings, &more})
    for (const std::string& setting : *settings) {
      const ParsedOverride parsed = parse_override(setting);
      if (!parsed.value) throw Failure("--set: " + parsed.error, cli::kUsage);
      overrides.push_back(*parsed.value);
    }
  ParsedExperiment parsed = read_experiment(options.experiment, overrides);
  if (!parsed.experiment) throw Failure(parsed.error, cli::kUsage);
  return std::move(*parsed.experiment);
}

std::string microseconds(TimeNs ns) { return std::to_string(ns / 1000) + " us"; }

int run_once(const Options& options) {
  const Experiment experiment = read(options);
  const StopRequest stop;
  Run run(experiment);
  {
    Progress progress(!options.quiet);
    run.go([&](TimeNs now, uint64_t flows_over) {
      progress.show(now, experiment.duration_ns,
                    microseconds(now) + " of " + microseconds(experiment.duration_ns) + ", " +
                        std::to_string(flows_over) + " flows over");
      return stop.signal() != 0;
    });
  }
  const Outcome outcome = run.outcome();
  write_results(experiment, outcome, options.out);
  if (!options.quiet) std::cout << one_line(experiment, outcome) << options.out.string() << '\n';
  return outcome.partial ? cli::kSignalBase + stop.signal() : cli::kSuccess;
}

int run_points(const Options& options) {
  Sweep sweep{.experiment = options.experiment,
              .out = options.out,
              .settings = options.settings,
              .keys = {},
              .jobs = options.jobs,
              .quiet = options.quiet};
  for (const std::string& text : options.sweeps) sweep.keys.push_back(parse_swept_key(text));
  if (options.commands) {
    for (const auto& command : commands_of(sweep, "rocemu"))
      std::cout << shell_line(command) << '\n';
    return cli::kSuccess;
  }
  // A wrong value is reported before anything runs.
  for (const SweptKey& swept : sweep.keys)
    for (const std::string& value : swept.values) read(options, {swept.key + "=" + value});
  return run_sweep(sweep);
}

}  // namespace

int sim(const std::vector<std::string>& arguments) {
  const Options options = parse(arguments);
  if (options.commands && options.sweeps.empty())
    throw Failure("--commands goes with --sweep", cli::kUsage);
  return options.sweeps.empty() ? run_once(options) : run_points(options);
}

}  // namespace rocemu::experiment
