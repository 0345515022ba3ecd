#include "emulator/cli/findings/checked_program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "base/unique_fd.h"
#include "emulator/cli/findings/findings.h"
#include "emulator/cli/findings/report_files.h"
#include "emulator/cli/process/exit_codes.h"
#include "verbs_shim/abi/check_files.h"

namespace rocemu::cli {

void add_check_variables(Environment& environment, const Installation& installation,
                         const CheckOptions& options, const std::filesystem::path& folder) {
  set(environment, ROCEMU_ENV_CHECK, options.names);
  set(environment, ROCEMU_ENV_CHECK_DIR, folder.native());
  if (!options.suppressions.empty()) {
    set(environment, ROCEMU_ENV_CHECK_SUPPRESSIONS, options.suppressions.native());
  }
  const std::filesystem::path watch = installation.library_dir / ROCEMU_CHECK_MEMORY_WATCH;
  std::error_code error;
  if (std::filesystem::exists(watch, error)) {
    set(environment, "LD_PRELOAD", preload_list(get(environment, "LD_PRELOAD"), watch));
    // It asks how large memory is before that is freed, and must not be who is told that it was
    // freed before.
    set(environment, "ASAN_OPTIONS",
        without_option(get(environment, "ASAN_OPTIONS"), "check_malloc_usable_size"));
  }
}

CheckedProgram::CheckedProgram(CheckOptions options) : options_(std::move(options)) {
  if (!options_.wanted()) return;
  if (!options_.report.empty()) write_report_of_none(options_.report);
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "rocemu-check-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Failure("cannot make a folder for findings, " + name + ": " + std::strerror(errno),
                  kOwnFailure);
  }
  folder_ = name;
}

CheckedProgram::~CheckedProgram() {
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

void CheckedProgram::add_variables(Environment& environment,
                                   const Installation& installation) const {
  if (is_checked()) add_check_variables(environment, installation, options_, folder_);
}

void CheckedProgram::add_findings_to(const std::filesystem::path& folder) const {
  const std::ifstream found(folder_ / ROCEMU_CHECK_FINDINGS_FILE);
  std::ostringstream lines;
  if (!found || !(lines << found.rdbuf())) return;
  const std::string text = lines.str();
  const std::filesystem::path file = folder / ROCEMU_CHECK_FINDINGS_FILE;
  // In one write, as programs append there at the same time. The folder may be another user's, who
  // must not choose with a link what root writes to, nor keep it waiting with a FIFO.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const UniqueFd all(::open(file.c_str(), kFlags, 0600));
  if (::write(all.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    std::cerr << "rocemu check: cannot add the findings to " + file.native() + ": " +
                     std::strerror(errno) + "\n";
}

int CheckedProgram::finish(int code) const {
  if (!is_checked()) return code;
  const std::vector<FoundOnce> findings = read_findings(folder_);
  if (!options_.report.empty()) write_report(options_.report, findings);
  if (findings.empty()) return code;
  std::cerr << "rocemu check: " + counts_text(findings) + "\n";
  return options_.exit_code == 0 ? code : options_.exit_code;
}

}  // namespace rocemu::cli
