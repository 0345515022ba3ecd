#include "tests/unit/verbs_shim/preloaded.h"

#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace {

constexpr char kMark[] = "ROCEMU_TEST_PROCESS";

}  // namespace

bool is_preloaded() {
  const char* mark = getenv(kMark);
  return mark != nullptr && mark == std::to_string(getpid());
}

void mark_preloaded() { setenv(kMark, std::to_string(getpid()).c_str(), 1); }

void start_preloaded(char** argv) {
  mark_preloaded();
  setenv("LD_PRELOAD", ROCEMU_SHIM_DIR "/librocemu-preload.so", 1);
  // Tests end without destroying everything, as programs do.
  setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
  execv("/proc/self/exe", argv);
  _exit(2);
}
