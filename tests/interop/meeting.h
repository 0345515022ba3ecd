// The two ends of a scenario find each other and keep step by lines of text over TCP.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace rocemu::interop {

class Meeting {
 public:
  // Waits for the other end on `port`, or goes to it when `host` (an IPv4 address) is not empty.
  // Throws e2e::Failure.
  Meeting(const std::string& host, uint16_t port);

  void say(const std::string& line);
  std::string hear();
  // Both ends have come so far.
  void keep_step(const std::string& step);

 private:
  UniqueFd fd_;
  std::string received_;
};

}  // namespace rocemu::interop
