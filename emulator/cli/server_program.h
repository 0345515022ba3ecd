// The program of `rocemu run --server`: a command of the shell, whose output goes to standard error
// with its name in front of each line, since standard output is the client's, for whoever reads it
// by a program; and which is known to be ready when it listens.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "emulator/cli/process/process_environment.h"
#include "emulator/cli/process/signals.h"

namespace rocemu::cli {

class ServerProgram {
 public:
  ServerProgram(const std::string& command, const Environment& environment,
                const SignalWatch& signals);
  // Ends it, and shows what it has still said.
  ~ServerProgram();
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;

  // Readable when it has said something, which relay() shows: whole lines, without waiting.
  int output() const { return output_.get(); }
  void relay();

  // True when it has a listening TCP socket, or somebody listens by the connection manager of the
  // NIC behind `nic_socket`.
  bool listens(const std::filesystem::path& nic_socket) const;

  // Its exit code, or 128 and the signal, once it has ended.
  std::optional<int> exit_code();
  void send(int signal) const;  // to all its processes
  // SIGTERM, and SIGKILL when that does not help.
  void end();

 private:
  void show(bool to_the_last_byte);

  UniqueFd output_;
  std::string unshown_;
  pid_t pid_ = 0;
  std::optional<int> exit_code_;
};

}  // namespace rocemu::cli
