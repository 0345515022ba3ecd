// The main program of rocemud: the process around Daemon (daemon.h), as Options (options.h) say.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "emulator/daemon/daemon.h"
#include "emulator/daemon/options.h"
#include "emulator/dma/guarded_access.h"

namespace rocemu::daemon {
namespace {

void set_up_log(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("rocemud"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

// A context takes two descriptors and a channel one, so the NIC takes all that it may have.
void raise_descriptor_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void make_dir(const std::filesystem::path& dir) {
  std::error_code error;
  const bool made = std::filesystem::create_directory(dir, error);
  if (error)
    throw std::runtime_error("can't use the state directory " + dir.string() + ": " +
                             error.message());
  if (made) std::filesystem::permissions(dir, std::filesystem::perms::owner_all);
}

// When `fd` cannot be written, the process that waits for it is gone. It would have been the one to
// end the NIC, so the NIC does not start.
void say_ready(int fd) {
  constexpr std::string_view kReady = "ready\n";
  if (::write(fd, kReady.data(), kReady.size()) != static_cast<ssize_t>(kReady.size()))
    throw std::runtime_error(std::string("can't write to --ready-fd: ") + std::strerror(errno));
  ::close(fd);
}

int run(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // what is too large for `ulimit -f` is refused, EFBIG
  dma::install_access_guard();
  if (options.die_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  set_up_log(options.log_level);
  raise_descriptor_limit();
  make_dir(options.dir);
  Daemon daemon(options);
  spdlog::info("{} devices in {}, process {}", options.devices, options.dir.string(), ::getpid());
  if (options.ready_fd) say_ready(*options.ready_fd);
  daemon.run();
  spdlog::info("ended");
  return 0;
}

}  // namespace
}  // namespace rocemu::daemon

int main(int argc, char** argv) {
  const rocemu::daemon::ParsedOptions parsed = rocemu::daemon::parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  try {
    return rocemu::daemon::run(*parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rocemud: %s\n", error.what());
    return 1;
  }
}
