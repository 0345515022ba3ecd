#pragma once

namespace rocemu {

// One turn of a loop that looks at memory until another thread has changed it: says so to the
// processor, which then leaves its other hardware thread more room and notices the change sooner
// (Intel SDM vol 2, PAUSE; Arm ARM C6.2, YIELD). Nothing on other processors.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace rocemu
