// Talks to valgrind, where the program runs under it. A request is a row of instructions that leave
// a processor as it was and that valgrind knows: they and the numbers are part of its interface
// (valgrind.h, memcheck.h) and stay the same.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rocemu::provider::valgrind {

inline uintptr_t request(uintptr_t number, uintptr_t first = 0, uintptr_t second = 0) {
  const uintptr_t words[6] = {number, first, second, 0, 0, 0};
  uintptr_t answer = 0;
#if defined(__x86_64__)
  asm volatile(
      "rolq $3, %%rdi\n rolq $13, %%rdi\n rolq $61, %%rdi\n rolq $51, %%rdi\n xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words)
      : "cc", "memory");
#elif defined(__aarch64__)
  register uintptr_t asked asm("x4") = reinterpret_cast<uintptr_t>(words);
  register uintptr_t answered asm("x3") = answer;
  asm volatile(
      "ror x12, x12, #3\n ror x12, x12, #13\n ror x12, x12, #51\n ror x12, x12, #61\n"
      "orr x10, x10, x10"
      : "+r"(answered)
      : "r"(asked)
      : "cc", "memory");
  answer = answered;
#endif
  return answer;
}

// VG_USERREQ__RUNNING_ON_VALGRIND.
inline bool is_running() { return request(0x1001) != 0; }

// VG_USERREQ__MAKE_MEM_DEFINED_IF_ADDRESSABLE: what comes into the memory comes from outside the
// program, and memcheck would take it for uninitialised.
inline void expect_data(const void* address, size_t bytes) {
  constexpr uintptr_t kMemcheck = uintptr_t{'M'} << 24 | uintptr_t{'C'} << 16;
  request(kMemcheck + 11, reinterpret_cast<uintptr_t>(address), bytes);
}

}  // namespace rocemu::provider::valgrind
