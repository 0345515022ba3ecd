// A control connection to rocemud (verbs_shim/abi/control.h): status and shutdown.
// Every call waits at most a few seconds and throws Failure when the daemon does not answer,
// answers something else, or has another version of the ABI.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "emulator/cli/unique_fd.h"

namespace rocemu::cli {

class ControlClient {
 public:
  // Connects and says HELLO without opening a device.
  explicit ControlClient(const std::filesystem::path& socket_path);

  const std::string& daemon_version() const { return daemon_version_; }

  // The daemon's account of itself: JSON text.
  std::string status();

  // Returns when the daemon has agreed; it ends a moment later.
  void shutdown();

 private:
  // `reply_bytes` is the size of `reply` and of the only reply that is right.
  UniqueFd request(const void* message, std::size_t message_bytes, void* reply,
                   std::size_t reply_bytes);
  UniqueFd simple_request(std::uint32_t op);
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path socket_path_;
  UniqueFd socket_;
  std::uint64_t cookie_ = 0;
  std::string daemon_version_;
};

}  // namespace rocemu::cli
