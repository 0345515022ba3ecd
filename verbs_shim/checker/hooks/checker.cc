#include "verbs_shim/checker/hooks/checker.h"

#include <pthread.h>
#include <stdlib.h>

#include <cstdio>

#include "verbs_shim/checker/detectors/table.h"
#include "verbs_shim/checker/memory/watched_memory.h"
#include "verbs_shim/checker/report/selection.h"

extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library);

namespace rocemu::check {
namespace {

std::atomic<Checker*> checker = nullptr;

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string findings_file() {
  const std::string directory = variable(ROCEMU_ENV_CHECK_DIR);
  return directory.empty() ? "" : directory + "/" ROCEMU_CHECK_FINDINGS_FILE;
}

void complain(const std::string& message) { std::fprintf(stderr, "rocemu: %s\n", message.c_str()); }

// A child has the forking thread alone: locks that others held are never given back, so it starts
// with a model of its own.
void on_forked() {
  reset_places_after_fork();
  reset_watched_memory_after_fork();
  Checker* parent = checker.load();
  if (parent != nullptr) checker = new Checker(*parent);
}

void on_exiting(int status, void*) {
  Checker& current = *checker.load();
  for (const auto& detector : current.detectors) detector->on_exiting(status);
}

void on_end(void*) {
  Checker& current = *checker.load();
  for (const auto& detector : current.detectors) detector->on_end(current.model);
}

// Destructors of the program's libraries destroy objects, too. A handler that is registered while
// exit(3) runs the last one, which calls all destructors, comes after these.
__attribute__((destructor)) void on_exit() {
  if (checker.load() != nullptr) __cxa_atexit(on_end, nullptr, nullptr);
}

}  // namespace

Checker::Checker(const rocemu_check_services& services, Suppressions suppressions, std::string file)
    : model(services), reporter(std::move(suppressions), std::move(file)) {}

Checker::Checker(Checker& parent)
    : model(parent.model.services), reporter(parent.reporter), inherited(&parent.model) {
  add_detectors();
}

void Checker::add_detectors() {
  const Selection selection(variable(ROCEMU_ENV_CHECK));
  if (!selection.unknown.empty() && inherited == nullptr) {
    complain(ROCEMU_ENV_CHECK ": there is no check '" + selection.unknown +
             "'; docs/check.md lists them");
  }
  for (const DetectorRow& row : detector_table()) {
    if (selection.has(row.name)) add(row.make());
  }
}

void Checker::add(std::unique_ptr<Detector> detector) {
  detector->attach(static_cast<unsigned>(detectors.size()), model, reporter);
  const auto wants = [&](unsigned event, std::vector<Detector*>& list) {
    if ((detector->wants() & event) != 0) list.push_back(detector.get());
  };
  wants(Detector::kSends, sends);
  wants(Detector::kReceives, receives);
  wants(Detector::kPolls, polls);
  wants(Detector::kNextPolls, next_polls);
  wants(Detector::kArms, arms);
  wants(Detector::kMeaninglessReads, meaningless_reads);
  detectors.push_back(std::move(detector));
}

Checker* current_checker() { return checker.load(std::memory_order_acquire); }

std::shared_ptr<Object> Hook::find(rocemu_check_kind kind, const void* handle) {
  std::shared_ptr<Object> found = checker.model.find(kind, handle);
  if (found == nullptr && checker.inherited != nullptr &&
      checker.inherited->try_has(kind, handle)) {
    tell_used_in_child(kind);
  }
  return found;
}

void Hook::tell_used_in_child(rocemu_check_kind kind) {
  for (const auto& detector : checker.detectors) detector->on_used_in_child(call, kind);
}

}  // namespace rocemu::check

extern "C" __attribute__((visibility("default"))) const rocemu_check_hooks* rocemu_check_start_v1(
    const rocemu_check_services* services) {
  using namespace rocemu::check;
  static const rocemu_check_hooks kHooks = [] {
    rocemu_check_hooks hooks = {};
    fill_object_hooks(hooks);
    fill_posting_hooks(hooks);
    fill_completion_hooks(hooks);
    fill_event_hooks(hooks);
    return hooks;
  }();
  if (current_checker() != nullptr) return &kHooks;
  Suppressions suppressions;
  const std::string file = variable(ROCEMU_ENV_CHECK_SUPPRESSIONS);
  if (!file.empty()) {
    if (const std::string problem = suppressions.read(file); !problem.empty()) complain(problem);
  }
  auto* started = new Checker(*services, std::move(suppressions), findings_file());
  started->add_detectors();
  Checker* none = nullptr;
  if (!checker.compare_exchange_strong(none, started)) return &kHooks;
  hear_of_memory(kHooks.memory_going);
  hear_of_cm();
  ::on_exit(on_exiting, nullptr);
  pthread_atfork(nullptr, nullptr, on_forked);
  return &kHooks;
}
