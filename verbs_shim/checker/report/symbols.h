// Return addresses as people read them. By libbacktrace where the build has it: function, file and
// line from debug information, in the module or beside it; without it, what the dynamic symbols
// say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rocemu::check {

struct SourcePlace {
  std::string function;  // demangled; empty when nothing is known
  std::string file;      // empty without debug information
  int line = 0;
  std::string module;           // path of the program or library
  uintptr_t module_offset = 0;  // offset of the address in the module
};

// The innermost inlined function first. Never empty. Slow, not thread-safe.
std::vector<SourcePlace> symbols_of(uintptr_t return_address);

// "main  /home/me/pingpong.c:217", "ibv_create_qp  (libibverbs.so.1+0x1234)"
std::string as_text(const SourcePlace& place);

}  // namespace rocemu::check
