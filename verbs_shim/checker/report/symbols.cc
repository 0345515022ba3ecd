#include "verbs_shim/checker/report/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <cstdio>

#ifdef ROCEMU_LIBBACKTRACE
#include <backtrace.h>
#endif

namespace rocemu::check {
namespace {

std::string demangled(const char* name) {
  if (name == nullptr) return {};
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string result = text;
  free(text);
  return result;
}

#ifdef ROCEMU_LIBBACKTRACE

void ignore_error(void*, const char*, int) {}

unsigned long long modules_loaded() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

// A state knows the modules that were there when it was made, and can't be given up; so there is a
// new one when modules have come.
backtrace_state* debug_information() {
  static backtrace_state* state = nullptr;
  static unsigned long long known_loads = 0;
  const unsigned long long loads = modules_loaded();
  if (state == nullptr || loads != known_loads) {
    state = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
    known_loads = loads;
  }
  return state;
}

struct Lookup {
  std::vector<SourcePlace> found;
};

void look_up(uintptr_t address, Lookup& lookup) {
  backtrace_state* state = debug_information();
  if (state == nullptr) return;
  backtrace_pcinfo(
      state, address,
      [](void* data, uintptr_t, const char* file, int line, const char* function) {
        if (function == nullptr) return 0;
        SourcePlace place;
        place.function = demangled(function);
        if (file != nullptr) place.file = file;
        place.line = line;
        static_cast<Lookup*>(data)->found.push_back(std::move(place));
        return 0;
      },
      ignore_error, &lookup);
  if (!lookup.found.empty()) return;
  backtrace_syminfo(
      state, address,
      [](void* data, uintptr_t, const char* symbol, uintptr_t, uintptr_t) {
        if (symbol == nullptr) return;
        SourcePlace place;
        place.function = demangled(symbol);
        static_cast<Lookup*>(data)->found.push_back(std::move(place));
      },
      ignore_error, &lookup);
}

#else

struct Lookup {
  std::vector<SourcePlace> found;
};
void look_up(uintptr_t, Lookup&) {}

#endif

}  // namespace

std::vector<SourcePlace> symbols_of(uintptr_t return_address) {
  const uintptr_t address = return_address - 1;  // within the call
  Lookup lookup;
  look_up(address, lookup);
  Dl_info info = {};
  const bool known = dladdr(reinterpret_cast<void*>(address), &info) != 0;
  if (lookup.found.empty()) {
    SourcePlace& place = lookup.found.emplace_back();
    if (known) place.function = demangled(info.dli_sname);
  }
  for (SourcePlace& place : lookup.found) {
    if (!known || info.dli_fname == nullptr) continue;
    place.module = info.dli_fname;
    place.module_offset = return_address - reinterpret_cast<uintptr_t>(info.dli_fbase);
  }
  return std::move(lookup.found);
}

std::string as_text(const SourcePlace& place) {
  std::string text = place.function.empty() ? "??" : place.function;
  if (!place.file.empty()) {
    text += "  " + place.file;
    if (place.line > 0) text += ":" + std::to_string(place.line);
    return text;
  }
  char offset[32];
  std::snprintf(offset, sizeof(offset), "+0x%lx", static_cast<unsigned long>(place.module_offset));
  return text + "  (" + place.module.substr(place.module.rfind('/') + 1) + offset + ")";
}

}  // namespace rocemu::check
