// Verbs leave errno as they do where the kernel has a part in them: a verb that fails has its error
// there as well as in its answer, and one that succeeds leaves errno as it was. Programs rely on
// both.
#pragma once

#include <errno.h>

namespace rocemu::provider {

// `LeavesErrno<verb>::call` is the verb, of which an answer other than 0 is an errno.
template <auto verb>
struct LeavesErrno;

template <typename... Args, int (*verb)(Args...)>
struct LeavesErrno<verb> {
  static int call(Args... args) {
    const int before = errno;
    const int error = verb(args...);
    errno = error == 0 ? before : error;
    return error;
  }
};

// One that makes an object sets errno itself when it answers null.
template <typename Object, typename... Args, Object* (*verb)(Args...)>
struct LeavesErrno<verb> {
  static Object* call(Args... args) {
    const int before = errno;
    Object* object = verb(args...);
    if (object != nullptr) errno = before;
    return object;
  }
};

template <typename... Args, void (*verb)(Args...)>
struct LeavesErrno<verb> {
  static void call(Args... args) {
    const int before = errno;
    verb(args...);
    errno = before;
  }
};

}  // namespace rocemu::provider
