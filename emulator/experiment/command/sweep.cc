#include "emulator/experiment/command/sweep.h"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/experiment/command/progress.h"
#include "emulator/experiment/command/stop_request.h"

extern char** environ;

namespace rocemu::experiment {

using cli::Failure;

SweptKey parse_swept_key(const std::string& text) {
  const size_t equals = text.find('=');
  SweptKey swept;
  if (equals != std::string::npos && equals > 0) {
    swept.key = text.substr(0, equals);
    for (size_t at = equals + 1; at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      if (comma > at) swept.values.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  if (swept.values.empty())
    throw Failure("--sweep: '" + text +
                      "' is not KEY=VALUE,VALUE,... (as in workload.background.load=30%,50%)",
                  cli::kUsage);
  return swept;
}

std::vector<std::vector<std::string>> commands_of(const Sweep& sweep, const std::string& program) {
  std::vector<std::vector<std::string>> points{{}};  // KEY=VALUE of each
  for (const SweptKey& swept : sweep.keys) {
    std::vector<std::vector<std::string>> more;
    for (const std::vector<std::string>& point : points)
      for (const std::string& value : swept.values) {
        more.push_back(point);
        more.back().push_back(swept.key + "=" + value);
      }
    points = std::move(more);
  }
  std::vector<std::vector<std::string>> commands;
  for (const std::vector<std::string>& point : points) {
    std::string name;
    for (const std::string& setting : point) name += (name.empty() ? "" : ",") + setting;
    std::ranges::replace(name, '/', '_');
    std::vector<std::string> command{program,          "sim",    sweep.experiment, "--out",
                                     sweep.out / name, "--quiet"};
    for (const auto* settings : {&sweep.settings, &point})
      for (const std::string& setting : *settings) {
        command.emplace_back("--set");
        command.push_back(setting);
      }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::strchr("%+,-./:=@_", c) != nullptr;
    });
    std::string quoted = word;
    for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    line += (line.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return line;
}

namespace {

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(), environ);
  if (error != 0)
    throw Failure(std::string("no process for a point of the sweep: ") + std::strerror(error));
  return child;
}

int code_of(int status) {
  return WIFSIGNALED(status) ? cli::kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_sweep(const Sweep& sweep) {
  const StopRequest stop;
  const auto commands = commands_of(sweep, "rocemu");
  Progress progress(!sweep.quiet);
  std::vector<pid_t> running;
  size_t next = 0, over = 0;
  int failure = cli::kSuccess;
  bool told = false;
  while (next < commands.size() || !running.empty()) {
    if (stop.signal() != 0) {
      next = commands.size();
      // A terminal has told them as well; once is enough for them.
      if (!told)
        for (const pid_t child : running) ::kill(child, SIGINT);
      told = true;
      if (running.empty()) break;
    }
    while (next < commands.size() && running.size() < sweep.jobs)
      running.push_back(start(commands[next++]));
    progress.show(over, commands.size(),
                  std::to_string(over) + " of " + std::to_string(commands.size()) + " points");
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, 0);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) break;
    std::erase(running, child);
    ++over;
    if (failure == cli::kSuccess) failure = code_of(status);
  }
  return stop.signal() != 0 ? cli::kSignalBase + stop.signal() : failure;
}

}  // namespace rocemu::experiment
