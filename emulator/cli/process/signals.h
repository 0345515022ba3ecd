// Signals as events: while a SignalWatch lives, the signals below do not interrupt rocemu but are
// read from it in order.
#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace rocemu::cli {

struct SignalEvent {
  int number;
  // To this process alone: sent with kill(2), a timer's, or a hang-up's to the leader of a session.
  // Others of the terminal (^C, ^\) go to the whole foreground group, and so have reached the
  // program already.
  bool is_ours_alone;
};

// Thrown when a signal that asks for the end arrives before a command has done its work.
struct Interrupted {
  int signal;
};

class SignalWatch {
 public:
  // Watches SIGCHLD and every signal that asks a program to end or is left to its own use. SIGPIPE
  // is ignored: who no longer reads what programs say does not end them.
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int fd() const { return fd_.get(); }
  SignalEvent wait();

  // For a child before exec: mask and dispositions become as rocemu found them.
  void restore_in_child() const;

 private:
  sigset_t found_mask_;
  struct sigaction found_child_action_;
  struct sigaction found_pipe_action_;
  UniqueFd fd_;
};

}  // namespace rocemu::cli
