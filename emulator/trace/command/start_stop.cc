#include "emulator/trace/command/start_stop.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iostream>
#include <vector>

#include "base/unique_fd.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/state_dir.h"
#include "emulator/trace/record/filter.h"

namespace rocemu::trace {
namespace {

using cli::Failure;

[[noreturn]] void fail(const std::string& what) {
  throw Failure(what + "; see: rocemu trace --help", cli::kUsage);
}

uint64_t bytes_of(const std::string& megabytes) {
  uint64_t number = 0;
  const char* const end = megabytes.data() + megabytes.size();
  const auto read = std::from_chars(megabytes.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number == 0 || number > 1'000'000'000)
    fail("--limit-mb is a number from 1 on");
  return number * 1'000'000;
}

void add_filter(std::string& filter, const std::string& key, const std::string& value) {
  if (value.find(',') != std::string::npos) fail("'" + value + "' has a comma in it");
  filter += (filter.empty() ? "" : ",") + key + "=" + value;
  Filter parsed;
  std::vector<std::string> devices;
  if (const std::string error = parse_filter(filter, parsed, devices); !error.empty())
    fail("--" + key + ": " + error);
}

// The file for a trace: this user's, for nobody else's eyes, since it tells of programs' keys and
// addresses. The NIC empties it when it begins; where it refuses, all is as it was.
class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& path) : path_(path) {
    // O_NONBLOCK: a FIFO that nobody reads is refused, not waited for.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    file_ = UniqueFd(::open(path.c_str(), kFlags | O_EXCL, 0600));
    is_new_ = static_cast<bool>(file_);
    if (!is_new_) file_ = UniqueFd(::open(path.c_str(), kFlags, 0600));
    if (!file_) throw Failure("can't write " + path.string() + ": " + std::strerror(errno));
  }

  int fd() const { return file_.get(); }
  // Leaves no file where there was none.
  void undo() const {
    if (is_new_) ::unlink(path_.c_str());
  }

 private:
  const std::filesystem::path& path_;
  UniqueFd file_;
  bool is_new_;
};

}  // namespace

StartOptions parse_start(std::span<const std::string> words, bool stop) {
  StartOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    if (!option.starts_with("--")) {
      if (stop || !options.file.empty()) fail("'" + words[i] + "' is one word too many");
      options.file = words[i];
      continue;
    }
    const auto value = [&] {
      if (equals != std::string::npos) return words[i].substr(equals + 1);
      if (++i == words.size()) fail(option + " wants a value");
      return words[i];
    };
    if (option == "--name") {
      options.nic.name = value();
      cli::require_valid_name(options.nic.name);
    } else if (option == "--socket") {
      options.nic.socket = value();
    } else if (!stop && option == "--limit-mb") {
      options.max_bytes = bytes_of(value());
    } else if (!stop && (option == "--device" || option == "--qp" || option == "--program")) {
      add_filter(options.filter, option.substr(2), value());
    } else {
      fail("'" + option + "' is no option of trace " + (stop ? "stop" : "start"));
    }
  }
  if (!stop && options.file.empty()) fail("which file?");
  if (!options.nic.name.empty() && !options.nic.socket.empty())
    fail("--name and --socket exclude each other");
  return options;
}

int start(std::span<const std::string> words) {
  const StartOptions options = parse_start(words);
  cli::ControlClient nic(cli::find_running_nic(options.nic).socket());
  const TraceFile file(options.file);
  try {
    nic.start_trace(file.fd(), options.filter, options.max_bytes);
  } catch (const cli::Refusal&) {
    file.undo();
    throw;
  }
  return cli::kSuccess;
}

int stop(std::span<const std::string> words) {
  const StartOptions options = parse_start(words, true);
  const auto end = cli::ControlClient(cli::find_running_nic(options.nic).socket()).stop_trace();
  std::cout << end.written_bytes << " bytes";
  if (end.lost_records != 0) std::cout << ", " << end.lost_records << " records had no room";
  std::cout << '\n';
  if (end.write_error != 0)
    throw Failure(std::string("the file took no more: ") + std::strerror(end.write_error));
  return cli::kSuccess;
}

}  // namespace rocemu::trace
