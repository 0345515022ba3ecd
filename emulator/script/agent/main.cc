// rocemu-script-agent: an ordinary verbs program that calls for a script what that says, on the
// host of the NIC that the script is played against. `rocemu script --agent` starts it.
//
//   rocemu-script-agent [--device NAME] [--agent-port PORT]
//
// A connection is a script, and its end that of all that it made. The agent says when it is ready
// for one, what the script before made being gone. Each line that comes is a call of
// docs/scripts.md, and is answered by a line with its result, or "! " and why it cannot be.
#include <sys/socket.h>

#include <charconv>
#include <iostream>
#include <string>
#include <system_error>

#include "emulator/script/agent/ibv_program.h"
#include "emulator/script/language/parser.h"
#include "emulator/script/live/line_socket.h"

namespace rocemu::script {

namespace {

struct Options {
  std::string device;
  uint16_t port = kAgentPort;
};

std::string answer(IbvProgram& program, const std::string& line) {
  try {
    return to_text(program.call(parse_call(line)));
  } catch (const Impossible& error) {
    return std::string("! ") + error.what();
  } catch (const SyntaxError& error) {
    return std::string("! ") + error.what();
  }
}

void serve(LineSocket socket, const std::string& device) {
  try {
    IbvProgram program(device, socket.own_address(), socket.peer_address());
    socket.write(kAgentReady);
    while (const auto line = socket.read()) socket.write(answer(program, *line));
  } catch (const std::system_error& error) {
    std::cerr << "rocemu-script-agent: " << error.what() << std::endl;
  } catch (const std::runtime_error& error) {
    std::cerr << "rocemu-script-agent: " << error.what() << std::endl;
    socket.write(std::string("! ") + error.what());
  }
}

// False: a bad command line.
bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[i + 1];
    const char* const end = value.data() + value.size();
    if (option == "--device") {
      options.device = value;
    } else if (option != "--agent-port" ||
               std::from_chars(value.data(), end, options.port).ptr != end || options.port == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::cerr << "rocemu-script-agent [--device NAME] [--agent-port PORT]\n";
    return 2;
  }
  try {
    const UniqueFd listening = LineSocket::listen(options.port);
    std::cout << "ready" << std::endl;
    for (;;) {
      UniqueFd connection(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) serve(LineSocket(std::move(connection)), options.device);
    }
  } catch (const std::exception& error) {
    std::cerr << "rocemu-script-agent: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace rocemu::script

int main(int argc, char** argv) { return rocemu::script::run(argc, argv); }
