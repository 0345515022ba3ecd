#include "emulator/cli/server_program.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>

#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/process_tree.h"
#include "emulator/cli/process/program.h"

namespace rocemu::cli {
namespace {

constexpr const char* kPrefix = "[server] ";
constexpr std::chrono::seconds kEndTimeout{2};  // for SIGTERM, then for SIGKILL
constexpr int kStep_ms = 10;

}  // namespace

ServerProgram::ServerProgram(const std::string& command, const Environment& environment,
                             const SignalWatch& signals) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
  output_ = UniqueFd(ends[0]);
  const UniqueFd input(ends[1]);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  pid_ = spawn_program({"/bin/sh", "-c", command}, environment, signals, input.get());
}

ServerProgram::~ServerProgram() {
  end();
  relay();
  show(/*to_the_last_byte=*/true);
}

void ServerProgram::relay() {
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while ((count = ::read(output_.get(), bytes.data(), bytes.size())) > 0)
    unshown_.append(bytes.data(), static_cast<size_t>(count));
  // All its processes have closed it: nothing more is to be waited for.
  if (count == 0) output_.reset();
  show(/*to_the_last_byte=*/false);
}

void ServerProgram::show(bool to_the_last_byte) {
  if (to_the_last_byte && !unshown_.empty() && unshown_.back() != '\n') unshown_ += '\n';
  // In one write, since the client may write there, too.
  std::string lines;
  size_t shown = 0;
  for (size_t end; (end = unshown_.find('\n', shown)) != std::string::npos; shown = end + 1)
    lines += kPrefix + unshown_.substr(shown, end + 1 - shown);
  unshown_.erase(0, shown);
  std::cerr << lines;
  // What nobody could be told is no reason to be silent from then on.
  std::cerr.clear();
}

bool ServerProgram::listens(const std::filesystem::path& nic_socket) const {
  if (any_listens_on_tcp(process_tree(pid_))) return true;
  const Json status = ControlClient(nic_socket).status();
  const auto cm = status.find("connection_management");
  return cm != status.end() && cm->contains("listeners") && !cm->at("listeners").empty();
}

std::optional<int> ServerProgram::exit_code() {
  if (!exit_code_) exit_code_ = exit_code_if_ended(pid_);
  return exit_code_;
}

void ServerProgram::send(int signal) const {
  for (const pid_t pid : process_tree(pid_)) ::kill(pid, signal);
}

void ServerProgram::end() {
  if (exit_code()) return;
  // The shell may be over before those that it has started.
  const std::vector<pid_t> all = process_tree(pid_);
  const auto is_over = [&] {
    exit_code();
    return std::ranges::none_of(all, [](pid_t pid) { return ::kill(pid, 0) == 0; });
  };
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (is_over()) return;
    for (const pid_t pid : all) ::kill(pid, signal);
    const auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
    while (!is_over() && std::chrono::steady_clock::now() < deadline) {
      pollfd watched = {output_.get(), POLLIN, 0};
      ::poll(&watched, 1, kStep_ms);
      if (output_) relay();
    }
  }
}

}  // namespace rocemu::cli
