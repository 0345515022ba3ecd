// The checking programs report that something is not as it must be by an exception that carries one
// line of text. Programs catch it at the top (verify_bytes) or once a row (bad_input).
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

namespace rocemu::e2e {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Failure with a printf-style text.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

// `errno_value` is what a verb returned: 0 or an errno value. Throws unless it is 0.
void must(int errno_value, const char* what);

// For verbs that return a pointer and set errno. Throws when it is null.
template <typename T>
T* must(T* object, const char* what);

[[noreturn]] void fail_errno(int errno_value, const char* what);

// "ENOMEM (Cannot allocate memory)"; "success" for 0.
std::string errno_text(int errno_value);

template <typename T>
T* must(T* object, const char* what) {
  if (object == nullptr) fail_errno(errno, what);
  return object;
}

}  // namespace rocemu::e2e
