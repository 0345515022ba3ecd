#include "emulator/lab/up.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <system_error>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/program.h"
#include "emulator/lab/interfaces.h"
#include "emulator/lab/namespaces.h"

namespace rocemu::lab {
namespace {

using cli::Failure;
using cli::SignalWatch;

constexpr char kBridge[] = "lab";
constexpr char kInterface[] = "eth0";
constexpr int kStep_ms = 10;
constexpr int kReadySteps = 500;
constexpr int kEndSteps = 100;  // half of them after SIGTERM, half after SIGKILL

std::string host_name(unsigned number) { return "h" + std::to_string(number); }
std::string ipv4_of(unsigned number) { return "10.99.0." + std::to_string(number); }
std::string ipv6_of(unsigned number) {
  char text[16];
  std::snprintf(text, sizeof text, "fd99::%x", number);
  return text;
}

void pause(SignalWatch& signals, int limit_ms) {
  pollfd watched = {signals.fd(), POLLIN, 0};
  if (::poll(&watched, 1, limit_ms) <= 0) return;
  if (const int number = signals.wait().number; number != SIGCHLD) throw cli::Interrupted{number};
}

void write_log(const LabDir& dir) {
  redirect(STDERR_FILENO, dir.path() / "log", O_WRONLY | O_CREAT | O_APPEND);
}

// Makes a lab step by step.
class Builder {
 public:
  Builder(const UpOptions& options, const LabDir& dir) : options_(options), dir_(dir) {}

  void build() {
    write_hosts_file();
    make_bridge();
    for (unsigned i = 1; i <= options_.hosts; ++i)
      hold(host_name(i), [&] {
        enter(dir_, "wire");
        make_namespaces(/*as_root=*/false);
      });
    if (options_.impair.empty() && options_.network.empty()) {
      connect_by_bridge();
    } else {
      connect_by_wire();
    }
    for (unsigned i = 1; i <= options_.hosts; ++i) set_up_host(i);
    start_nics();
  }

 private:
  void write_hosts_file() const {
    std::ofstream file(dir_.path() / "hosts");
    file << "127.0.0.1 localhost\n::1 localhost\n";
    for (unsigned i = 1; i <= options_.hosts; ++i)
      for (const std::string& address : {ipv4_of(i), ipv6_of(i)})
        file << address << ' ' << host_name(i) << '\n';
  }

  // Starts a process of the lab. False when it ends before it is ready.
  template <class Ready>
  bool keep(const std::string& holder, const std::string& output,
            const std::function<void()>& program, Ready ready) {
    const pid_t pid = start(
        [&] {
          redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
          redirect(STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC);
          write_log(dir_);
          dir_.hold(holder);
          program();
        },
        &signals_);
    dir_.note(holder, pid);
    for (int step = 0; step < kReadySteps; ++step) {
      if (ready()) return true;
      if (::waitpid(pid, nullptr, WNOHANG) != 0) break;
      pause(signals_, kStep_ms);
    }
    return false;
  }

  void hold(const std::string& holder, const std::function<void()>& make) {
    const auto program = [&] {
      make();
      ::execlp("sleep", dir_.mark().c_str(), "infinity", nullptr);
      throw std::system_error(errno, std::generic_category(), "sleep");
    };
    if (keep(holder, "/dev/null", program, [&] { return dir_.lives(holder); })) return;
    throw Failure("cannot make namespaces: " + dir_.last_log_line() +
                  "; this takes root, or user namespaces for ordinary users (sysctl "
                  "user.max_user_namespaces, kernel.unprivileged_userns_clone, and on Ubuntu "
                  "kernel.apparmor_restrict_unprivileged_userns)");
  }

  void do_on(const std::string& holder, const std::function<void()>& work) const {
    const bool done = succeeded(start([&] {
      write_log(dir_);
      enter(dir_, holder);
      work();
    }));
    if (!done) throw Failure(holder + ": " + dir_.last_log_line());
  }

  void make_bridge() {
    const bool as_root = ::geteuid() != 0;
    if (as_root) std::ofstream(dir_.path() / "user");
    hold("wire", [&] { make_namespaces(as_root); });
    do_on("wire", [&] {
      bring_up("lo");
      add_bridge(kBridge);
      bring_up(kBridge, options_.mtu_bytes);
    });
  }

  void connect_by_bridge() const {
    do_on("wire", [&] {
      for (unsigned i = 1; i <= options_.hosts; ++i) {
        const std::string port = "p" + std::to_string(i);
        add_veth(port, options_.mtu_bytes, kInterface, dir_.pid_of(host_name(i)));
        bring_up(port, 0, kBridge);
      }
    });
  }

  void connect_by_wire() {
    const std::filesystem::path program = cli::own_executable().parent_path() / "rocemu-lab-wire";
    std::vector<std::string> words = {dir_.mark()};
    for (const std::string& spec : options_.impair) words.insert(words.end(), {"--impair", spec});
    if (!options_.network.empty()) words.insert(words.end(), {"--network", options_.network});
    for (unsigned i = 1; i <= options_.hosts; ++i)
      words.push_back(std::to_string(dir_.pid_of(host_name(i))));
    const std::filesystem::path output = dir_.path() / "cable";
    const auto become_wire = [&] {
      enter(dir_, "wire");
      ::execv(program.c_str(), cli::as_exec_array(words).data());
      throw std::system_error(errno, std::generic_category(), program);
    };
    const auto ready = [&] {
      std::string said;
      return static_cast<bool>(std::getline(std::ifstream(output), said));
    };
    if (!keep("cable", output, become_wire, ready))
      throw Failure("the wire: " + dir_.last_log_line());
  }

  void set_up_host(unsigned i) const {
    do_on(host_name(i), [&] {
      const std::string hosts_file = dir_.path() / "hosts";
      const std::string name = host_name(i);
      if (::sethostname(name.data(), name.size()) != 0 ||
          ::mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
        throw std::system_error(errno, std::generic_category(), "/etc/hosts");
      ::mount("sysfs", "/sys", "sysfs", 0, nullptr);  // not every container permits this
      bring_up("lo");
      add_address(kInterface, ipv4_of(i), 24);
      try {
        add_address(kInterface, ipv6_of(i), 64);
      } catch (const std::system_error&) {
        // This machine has no IPv6.
      }
      std::ofstream("/proc/sys/net/ipv6/conf/eth0/accept_dad") << 0;
      bring_up(kInterface, options_.mtu_bytes);
    });
  }

  // The settings for all hosts, and those for this one.
  std::vector<std::string> congestion_of(const std::string& host) const {
    std::vector<std::string> specs;
    for (const std::string& spec : options_.congestion) {
      const size_t equals = spec.substr(0, spec.find_first_of(",/")).find('=');
      if (equals == spec.npos) {
        specs.push_back(spec);
      } else if (spec.substr(0, equals) == host) {
        specs.push_back(spec.substr(equals + 1));
      }
    }
    return specs;
  }

  // Hosts stand where a NIC's faults have devices: a host has one.
  std::vector<std::string> faults_of(const std::string& host) const {
    std::vector<std::string> faults;
    for (const std::string& text : options_.faults) {
      const size_t end = text.find_first_of(" ,");
      const std::string name = text.substr(0, end);
      if (end != text.npos && (name == host || name == "all"))
        faults.push_back("rocemu0" + text.substr(end));
    }
    return faults;
  }

  void start_nics() {
    std::vector<pid_t> commands;
    for (unsigned i = 1; i <= options_.hosts; ++i) {
      const std::string port = options_.udp ? "udp:" + ipv4_of(i) + "+" + ipv6_of(i) : kInterface;
      commands.push_back(start(
          [&] {
            redirect(STDOUT_FILENO, "/dev/null", O_WRONLY);
            enter(dir_, host_name(i));
            std::vector<std::string> words = {"up", "--name", host_name(i), "--port",
                                              "rocemu0=" + port};
            for (const std::string& spec : congestion_of(host_name(i)))
              words.insert(words.end(), {"--congestion", spec});
            for (const std::string& fault : faults_of(host_name(i)))
              words.insert(words.end(), {"--fault", fault});
            if (!options_.recovery.empty())
              words.insert(words.end(), {"--recovery", options_.recovery});
            if (!options_.shake.empty()) words.push_back("--shake=" + options_.shake);
            if (!options_.check.empty()) words.push_back(options_.check);
            become_rocemu(dir_, std::move(words));
          },
          &signals_));
    }
    for (const pid_t command : commands) {
      int status = 0;
      while (::waitpid(command, &status, WNOHANG) == 0) pause(signals_, /*limit_ms=*/-1);
      if (status != 0) throw Failure("a NIC did not start");
    }
  }

  const UpOptions& options_;
  const LabDir& dir_;
  SignalWatch signals_;
};

// Ends what holds the hosts' namespaces, and the programs that still run there, except on the host
// that this process is on.
void end_processes(const LabDir& dir) {
  HeldNetworks networks;
  for (const std::string& holder : dir.holders())
    if (dir.lives(holder)) networks.hold_that_of(dir.pid_of(holder));
  for (int step = 0; step < kEndSteps; ++step) {
    const std::vector<pid_t> left = networks.processes();
    if (left.empty()) return;
    if (step == 0 || step == kEndSteps / 2)
      for (const pid_t pid : left) ::kill(pid, step == 0 ? SIGTERM : SIGKILL);
    ::usleep(2 * kStep_ms * 1000);
  }
}

}  // namespace

void enter(const LabDir& dir, const std::string& holder) {
  if (!dir.lives(holder)) throw Failure(holder + " has ended");
  enter_namespaces(dir.pid_of(holder), dir.in_user_namespace());
}

void become_rocemu(const LabDir& dir, std::vector<std::string> words) {
  words.insert(words.begin(), cli::own_executable());
  ::setenv("XDG_RUNTIME_DIR", (dir.path() / "run").c_str(), /*overwrite=*/1);
  cli::exec_program(words, cli::current_environment());
}

void up(const UpOptions& options) {
  const LabDir dir = LabDir::create(options.name);
  try {
    Builder(options, dir).build();
  } catch (...) {
    tear_down(dir);
    throw;
  }
}

void tear_down(const LabDir& dir) {
  std::vector<pid_t> commands;
  for (const std::string& host : dir.hosts())
    commands.push_back(start([&] {
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) redirect(fd, "/dev/null", O_WRONLY);
      become_rocemu(dir, {"down", "--name", host});
    }));
  for (const pid_t command : commands) succeeded(command);
  end_processes(dir);
  for (const std::string& holder : dir.holders())
    if (dir.lives(holder)) ::kill(dir.pid_of(holder), SIGTERM);
  dir.remove();
}

}  // namespace rocemu::lab
