#include "verbs_shim/checker/report/process_reporter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <string_view>

namespace rocemu::check {
namespace {

// One write, so that lines of several processes don't mix; a part that was not taken is lost.
void write_once(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

void append(const std::string& path, const std::string& line) {
  // The folder may be a NIC's of another user, who must not choose with a link what this writes to.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = ::open(path.c_str(), kFlags, 0600);
  if (fd < 0) return;
  write_once(fd, line);
  ::close(fd);
}

std::string program_name() {
  char path[4096];
  const ssize_t bytes = ::readlink("/proc/self/exe", path, sizeof(path));
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : std::string();
}

}  // namespace

ProcessReporter::ProcessReporter(Suppressions suppressions, std::string file)
    : suppressions_(std::move(suppressions)), file_(std::move(file)) {}

ProcessReporter::ProcessReporter(const ProcessReporter& parent)
    : suppressions_(parent.suppressions_), file_(parent.file_), said_enough_(parent.said_enough_) {}

bool ProcessReporter::was_reported(const char* name, PlaceId place) {
  std::lock_guard lock(shown_lock_);
  if (shown_.size() < kShownMax) return !shown_.emplace(name, place).second;
  if (shown_.contains({name, place}) || said_enough_) return true;
  said_enough_ = true;
  write_once(STDERR_FILENO, "rocemu check: there were 1000 findings, further ones are left out\n");
  return true;
}

void ProcessReporter::report(const char* name, const Finding& finding, const char* verb,
                             PlaceId place, pid_t thread) {
  const int saved = errno;
  // A thread that is cancelled in here would keep the lock.
  int cancelable = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
  show(name, finding, verb, place, thread);
  pthread_setcancelstate(cancelable, nullptr);
  errno = saved;
}

void ProcessReporter::show(const char* name, const Finding& finding, const char* verb,
                           PlaceId place, pid_t thread) {
  std::lock_guard lock(output_lock_);
  Report report{.name = name,
                .verb = verb == nullptr ? "" : verb,
                .program = program_name(),
                .process = ::getpid(),
                .thread = thread,
                .finding = finding,
                .backtraces = {}};
  if (place != kNoPlace) {
    const std::string label = report.verb.empty() ? "here" : "in " + report.verb;
    report.backtraces.push_back({label, thread, program_frames(place)});
  }
  for (const RelatedPlace& related : finding.related) {
    if (related.place == kNoPlace) continue;
    report.backtraces.push_back({related.label, related.thread, program_frames(related.place)});
  }
  const bool quiet =
      !report.backtraces.empty() && suppressions_.covers(name, report.backtraces[0].frames);
  if (!quiet) {
    write_once(STDERR_FILENO, as_text(report));
    if (!file_.empty()) append(file_, as_json_line(report));
  }
}

}  // namespace rocemu::check
