#include "emulator/cli/server_and_client.h"

#include <poll.h>

#include <chrono>
#include <optional>

#include "emulator/cli/commands.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/process_tree.h"
#include "emulator/cli/process/program.h"
#include "emulator/cli/server_program.h"

namespace rocemu::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kListenTimeout{30};
constexpr std::chrono::seconds kAloneTimeout{10};
constexpr std::chrono::seconds kEndTimeout{2};  // for SIGTERM, then for SIGKILL
constexpr int kStep_ms = 20;

class Pair {
 public:
  Pair(const ServerAndClient& programs, const Environment& environment,
       const std::filesystem::path& nic_socket, SignalWatch& signals,
       const std::function<void()>& on_child_end)
      : programs_(programs),
        environment_(environment),
        nic_socket_(nic_socket),
        signals_(signals),
        on_child_end_(on_child_end),
        server_(programs.server, environment, signals) {}

  int run() {
    if (!server_comes_to_listen()) {
      const int code = *server_.exit_code();
      complain("the server " + describe(code) + " before it listened: " + programs_.server);
      return code == kSuccess ? static_cast<int>(kOwnFailure) : code;
    }
    client_ = spawn_program(programs_.client, environment_, signals_);
    Clock::time_point alone_since{};
    while (!client_code_ || !server_.exit_code()) {
      step();
      const bool server_failed = server_.exit_code().value_or(kSuccess) != kSuccess;
      if (!client_code_ && !server_failed) continue;
      if (alone_since == Clock::time_point{}) alone_since = Clock::now();
      if (Clock::now() - alone_since < kAloneTimeout) continue;
      if (client_code_) return end_server();
      const bool is_patient = Clock::now() - alone_since < kAloneTimeout + kEndTimeout;
      for (const pid_t pid : process_tree(client_)) ::kill(pid, is_patient ? SIGTERM : SIGKILL);
    }
    const int server_code = *server_.exit_code();
    if (server_code != kSuccess) complain("the server " + describe(server_code));
    return *client_code_ != kSuccess ? *client_code_ : server_code;
  }

 private:
  static std::string describe(int code) { return "ended with exit code " + std::to_string(code); }

  // False when it has ended instead.
  bool server_comes_to_listen() {
    const Clock::time_point deadline = Clock::now() + kListenTimeout;
    while (!server_.exit_code()) {
      if (server_.listens(nic_socket_)) return true;
      if (Clock::now() > deadline)
        throw Failure(
            "the server does not listen, by TCP or by the NIC's connection manager, after " +
                std::to_string(kListenTimeout.count()) + " s: " + programs_.server,
            kOwnFailure);
      step();
    }
    return false;
  }

  // Waits for a moment, or until something happens, and attends to it.
  void step() {
    pollfd watched[] = {{signals_.fd(), POLLIN, 0}, {server_.output(), POLLIN, 0}};
    if (::poll(watched, 2, kStep_ms) <= 0) return;
    if (watched[1].revents != 0) server_.relay();
    if (watched[0].revents == 0) return;
    const SignalEvent event = signals_.wait();
    if (event.number == SIGCHLD) {
      if (client_ > 0 && !client_code_) client_code_ = exit_code_if_ended(client_);
      on_child_end_();
    } else if (event.is_ours_alone) {
      server_.send(event.number);
      if (client_ > 0 && !client_code_) ::kill(client_, event.number);
    }
  }

  int end_server() {
    server_.end();
    complain("the server went on " + std::to_string(kAloneTimeout.count()) +
             " s after the client's end, and was ended");
    return *client_code_;
  }

  const ServerAndClient& programs_;
  const Environment& environment_;
  const std::filesystem::path& nic_socket_;
  SignalWatch& signals_;
  const std::function<void()>& on_child_end_;
  ServerProgram server_;
  pid_t client_ = 0;
  std::optional<int> client_code_;
};

}  // namespace

int run_server_and_client(const ServerAndClient& programs, const Environment& environment,
                          const std::filesystem::path& nic_socket, SignalWatch& signals,
                          const std::function<void()>& on_child_end) {
  return Pair(programs, environment, nic_socket, signals, on_child_end).run();
}

}  // namespace rocemu::cli
