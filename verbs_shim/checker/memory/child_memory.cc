#include "verbs_shim/checker/memory/child_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

namespace rocemu::check {
namespace {

struct ClosedPart {
  Span span;
  int protection;
};

struct State {
  ChildTouched touched = nullptr;
  std::mutex lock;
  std::vector<Span> regions;
  std::vector<ClosedPart> closed;  // in a child alone, and not changed once it is there
};

State& state() {
  static State* const instance = new State;  // never destroyed: faults come until the end
  return *instance;
}

struct Mapping {
  uintptr_t from;
  uintptr_t to;
  int protection;
  bool is_private;
  bool is_special;  // [heap], [stack] ...
};

bool parse(const char* line, Mapping& mapping) {
  unsigned long from;
  unsigned long to;
  char rights[5];
  if (std::sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3) return false;
  mapping.from = from;
  mapping.to = to;
  mapping.protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                       (rights[2] == 'x' ? PROT_EXEC : 0);
  mapping.is_private = rights[3] == 'p';
  mapping.is_special = std::strchr(line, '[') != nullptr;
  return true;
}

std::vector<Mapping> mappings() {
  std::vector<Mapping> result;
  FILE* const file = std::fopen("/proc/self/maps", "re");
  if (file == nullptr) return result;
  char line[512];
  Mapping mapping;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (parse(line, mapping)) result.push_back(mapping);
  }
  std::fclose(file);
  return result;
}

Span whole_pages(const Span& span) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = (span.from + page - 1) & ~(page - 1);
  const uintptr_t to = span.to() & ~(page - 1);
  return to > from ? Span{from, to - from} : Span{};
}

void on_fault(int, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  State& here = state();
  const Span touched = {address, 1};
  const auto is_it = [&touched](const Span& span) { return span.meets(touched); };
  const auto part = std::find_if(here.closed.begin(), here.closed.end(),
                                 [&is_it](const ClosedPart& p) { return is_it(p.span); });
  const bool was_closed = part != here.closed.end();
  if (was_closed) {
    mprotect(reinterpret_cast<void*>(part->span.from), part->span.bytes, part->protection);
  } else {
    // Comes again when this returns, and ends the child: its own fault, or what ibv_fork_init()
    // keeps from children.
    signal(SIGSEGV, SIG_DFL);
    if (std::none_of(here.regions.begin(), here.regions.end(), is_it)) return;
  }
#if defined(__x86_64__)
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const rocemu_check_call at = {"memory", reinterpret_cast<const void*>(registers[REG_RIP]),
                                reinterpret_cast<const void*>(registers[REG_RSP])};
#else
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const rocemu_check_call at = {"memory", reinterpret_cast<const void*>(registers.pc),
                                reinterpret_cast<const void*>(registers.sp)};
#endif
  const int saved = errno;
  here.touched(&at, address);
  errno = saved;
}

bool take_over_faults() {
  struct sigaction before = {};
  if (sigaction(SIGSEGV, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

void close_parents_memory(State& here) {
  const auto stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  std::vector<ClosedPart> parts;
  for (const Mapping& mapping : mappings()) {
    const bool is_stack = mapping.from <= stack && stack < mapping.to;
    if (!mapping.is_private || mapping.is_special || is_stack || mapping.protection == PROT_NONE)
      continue;
    for (const Span& region : here.regions) {
      const Span pages = whole_pages(region);
      const uintptr_t from = std::max(pages.from, mapping.from);
      const uintptr_t to = std::min(pages.to(), mapping.to);
      if (from < to) parts.push_back({{from, to - from}, mapping.protection});
    }
  }
  here.closed = std::move(parts);
  for (const ClosedPart& part : here.closed)
    mprotect(reinterpret_cast<void*>(part.span.from), part.span.bytes, PROT_NONE);
}

void before_fork() { state().lock.lock(); }
void in_parent() { state().lock.unlock(); }
void in_child() {
  State& here = state();
  if (!here.regions.empty() && take_over_faults()) close_parents_memory(here);
  here.lock.unlock();
}

}  // namespace

void hear_of_children(ChildTouched touched) {
  state().touched = touched;
  pthread_atfork(before_fork, in_parent, in_child);
}

void add_parents_memory(const Span& span) {
  std::lock_guard lock(state().lock);
  state().regions.push_back(span);
}

void remove_parents_memory(const Span& span) {
  std::lock_guard lock(state().lock);
  auto& regions = state().regions;
  const auto found = std::find_if(regions.begin(), regions.end(), [&span](const Span& s) {
    return s.from == span.from && s.bytes == span.bytes;
  });
  if (found != regions.end()) regions.erase(found);
}

}  // namespace rocemu::check
