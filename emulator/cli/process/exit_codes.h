// Exit codes of `rocemu`, and the exception that carries one out of a command.
//
// run and exec hand on the status of the program they start, so whatever goes wrong on rocemu's own
// side is 125 there, as with env(1), timeout(1) and nohup(1).
#pragma once

#include <stdexcept>
#include <string>

namespace rocemu::cli {

enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,
  kUsage = 2,         // a bad command line or configuration
  kWrongState = 3,    // up: it is up already; status, down, env: it is not up
  kFindings = 66,     // run, exec with --check: it found something, unless another code was chosen
  kOwnFailure = 125,  // run, exec: rocemu failed, not the program
  kNotExecutable = 126,
  kNotFound = 127,
  kSignalBase = 128,  // plus the number of the signal that ended the program
};

// Thrown by a command to end with one line on stderr. The text says what is wrong and what to do,
// without a full stop and without the "rocemu: " that main() puts in front.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, int exit_code = kFailure)
      : std::runtime_error(message), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace rocemu::cli
