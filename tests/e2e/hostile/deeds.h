// A Deed is what a hostile program does to its NIC: a function that goes on until the process is
// killed, and one that says whether it can be done here at all.
#pragma once

#include <span>
#include <string>

namespace rocemu::e2e {

struct Deed {
  const char* name;
  // Empty when the kernel lets this user do it, otherwise what is missing.
  std::string (*missing)();
  void (*run)(const std::string& device);
  // The NIC kills the program for it, until when everything waits; 0: others hardly notice it.
  double waits_s = 0;
};

std::span<const Deed> descriptor_deeds();
std::span<const Deed> memory_deeds();
std::span<const Deed> object_deeds();
std::span<const Deed> table_deeds();

inline std::string nothing_missing() { return {}; }

}  // namespace rocemu::e2e
