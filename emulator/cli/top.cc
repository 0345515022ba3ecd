// `rocemu top`: what happens in a NIC that is up, again and again.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/signals.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/state_dir.h"
#include "emulator/cli/top/model.h"
#include "emulator/cli/top/once.h"
#include "emulator/cli/top/screen.h"
#include "emulator/cli/top/terminal.h"

namespace rocemu::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the name that ps(1) shows; a program in another PID namespace has its number alone.
std::string name_of_process(std::int64_t pid) {
  std::string name;
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::getline(file, name);
  for (char& c : name)
    if (c < ' ' || c > '~') c = '?';
  return name.empty() ? "pid " + std::to_string(pid) : name;
}

// The reports of one NIC, of which the last two are kept.
class Reports {
 public:
  explicit Reports(const RunningNic& nic)
      : name_(nic.name), state_dir_(nic.state_dir), client_(nic.socket()) {
    take();
  }

  void take() {
    Json status = {{"name", name_}};
    try {
      status.update(client_.status());
    } catch (const Failure& failure) {
      if (!now_ || is_there()) throw;
      throw Failure("the NIC named '" + name_ + "' has ended", kWrongState);
    }
    before_ = std::move(now_);
    now_ = top::read_report(status);
  }
  top::View view() const {
    return top::make_view(before_ ? &*before_ : nullptr, *now_, name_of_process);
  }

 private:
  // It may be stopped, or too busy to answer.
  bool is_there() const {
    return liveness(state_dir_.parent_path(), state_dir_.filename().native()) == Liveness::kAlive;
  }

  std::string name_;
  std::filesystem::path state_dir_;
  ControlClient client_;
  std::optional<top::Report> before_;
  std::optional<top::Report> now_;
};

// Waits until something is typed, or `until`. Throws Interrupted. `keyboard`: -1 for none.
void wait(SignalWatch& signals, int keyboard, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd sources[] = {{signals.fd(), POLLIN, 0}, {keyboard, POLLIN, 0}};
  const int ready = ::poll(sources, 2, left > 0 ? static_cast<int>(left) : 0);
  if (ready < 0 && errno != EINTR) throw Failure("cannot wait for the terminal");
  if (ready <= 0) return;
  if (sources[0].revents != 0) {
    const int number = signals.wait().number;
    if (number != SIGCHLD) throw Interrupted{number};
  }
  // A terminal that was closed has no more to say.
  if ((sources[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) throw Interrupted{SIGHUP};
}

int show_once(Reports& reports, const top::Choice& choice, const Options& options,
              Clock::duration interval) {
  SignalWatch signals;
  const Clock::time_point until = Clock::now() + interval;
  while (Clock::now() < until) wait(signals, -1, until);
  reports.take();
  if (options.json) {
    std::cout << top::once_json(reports.view(), choice).dump(2) << '\n';
  } else {
    std::cout << top::once_text(reports.view(), choice);
  }
  return kSuccess;
}

int show_always(Reports& reports, const top::Choice& choice, Clock::duration interval) {
  SignalWatch signals;
  top::Terminal terminal;
  top::Screen screen(choice);
  screen.show(reports.view());
  Clock::time_point next = Clock::now() + interval;
  while (true) {
    terminal.draw(screen.draw(terminal.size()));
    wait(signals, STDIN_FILENO, next);
    while (const auto key = terminal.read_key())
      if (!screen.on_key(*key)) return kSuccess;
    if (Clock::now() < next) continue;
    reports.take();
    screen.show(reports.view());
    next = Clock::now() + interval;
  }
}

}  // namespace

int show_top(const Options& options) {
  const top::Choice choice{.filter = options.top.filter,
                           .order = {options.top.sort, options.top.reverse}};
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options.top.interval_s));
  Reports reports(find_running_nic(options));
  return options.top.once ? show_once(reports, choice, options, interval)
                          : show_always(reports, choice, interval);
}

}  // namespace rocemu::cli
