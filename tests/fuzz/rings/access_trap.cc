#include "tests/fuzz/rings/access_trap.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <utility>

#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

namespace {

#if defined(__x86_64__) && defined(__linux__)
constexpr bool kAvailable = true;
constexpr long long kTrapFlag = 0x100;  // TF of RFLAGS: a SIGTRAP after one instruction
void single_step(void* context, bool on) {
  auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | kTrapFlag : flags & ~kTrapFlag;
}
#else
constexpr bool kAvailable = false;
void single_step(void*, bool) {}
#endif

AccessTrap* active = nullptr;
struct sigaction before_fault;
struct sigaction before_step;

void protect(std::span<std::byte> mapping, int protection) {
  if (!mapping.empty()) ::mprotect(mapping.data(), mapping.size(), protection);
}

}  // namespace

bool AccessTrap::available() { return kAvailable; }

AccessTrap::AccessTrap(OnAccess on_access) : on_access_(std::move(on_access)) {
  expect(active == nullptr, "there is one trap at a time");
  active = this;
  if (!kAvailable) return;
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = [](int number, siginfo_t* info, void* context) {
    on_fault(number, info, context);
  };
  ::sigaction(SIGSEGV, &action, &before_fault);
  action.sa_sigaction = [](int number, siginfo_t* info, void* context) {
    on_step(number, info, context);
  };
  ::sigaction(SIGTRAP, &action, &before_step);
}

AccessTrap::~AccessTrap() {
  disarm();
  active = nullptr;
  if (!kAvailable) return;
  ::sigaction(SIGSEGV, &before_fault, nullptr);
  ::sigaction(SIGTRAP, &before_step, nullptr);
}

size_t AccessTrap::watch(std::span<std::byte> mapping) {
  mappings_.push_back(mapping);
  return mappings_.size() - 1;
}

void AccessTrap::unwatch(size_t mapping) { mappings_[mapping] = {}; }

void AccessTrap::arm(size_t max_accesses) {
  left_ = kAvailable ? max_accesses : 0;
  if (left_ > 0) protect(PROT_NONE);
}

void AccessTrap::disarm() {
  left_ = 0;
  protect(PROT_READ | PROT_WRITE);
}

void AccessTrap::protect(int protection) {
  for (const auto mapping : mappings_) fuzz::protect(mapping, protection);
}

void AccessTrap::on_fault(int, void* info, void* context) {
  const auto* const at = static_cast<std::byte*>(static_cast<siginfo_t*>(info)->si_addr);
  for (size_t i = 0; i < active->mappings_.size(); ++i) {
    const auto mapping = active->mappings_[i];
    if (at < mapping.data() || at >= mapping.data() + mapping.size()) continue;
    active->on_access_(i, static_cast<size_t>(at - mapping.data()));
    if (--active->left_ == 0) {
      active->protect(PROT_READ | PROT_WRITE);
      return;
    }
    fuzz::protect(mapping, PROT_READ | PROT_WRITE);
    active->stepping_ = i;
    single_step(context, true);
    return;
  }
  // A fault of another kind: the handler from before reports it when the instruction runs again.
  ::sigaction(SIGSEGV, &before_fault, nullptr);
}

void AccessTrap::on_step(int, void*, void* context) {
  single_step(context, false);
  fuzz::protect(active->mappings_[active->stepping_], PROT_NONE);
}

}  // namespace rocemu::fuzz
