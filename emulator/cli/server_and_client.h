// The two programs of `rocemu run --server 'COMMAND' -- CLIENT`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "emulator/cli/process/process_environment.h"
#include "emulator/cli/process/signals.h"

namespace rocemu::cli {

struct ServerAndClient {
  std::string server;  // a command of the shell
  std::vector<std::string> client;
};

// Starts the server, and when that listens, by TCP or by the connection manager of the NIC behind
// `nic_socket`, the client. Returns the client's exit code or, where that is 0, the server's. One
// that the other leaves behind is ended after a while: a client whose server has failed, and a
// server, which counts as success. `on_child_end` is called when any child of this process has
// ended. A server that ends before it listens gives its code, or 125. Throws Failure when one does
// not come to listen.
int run_server_and_client(const ServerAndClient& programs, const Environment& environment,
                          const std::filesystem::path& nic_socket, SignalWatch& signals,
                          const std::function<void()>& on_child_end);

}  // namespace rocemu::cli
