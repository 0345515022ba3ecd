// A verb that destroys an object, between its two hooks.
#pragma once

#include "verbs_shim/provider/checked/checker.h"

namespace rocemu::provider::checked {

template <typename Verb>
int destroying(const rocemu_check_call& at, rocemu_check_kind kind, void* object, Verb verb) {
  hooks->going(&at, kind, object);
  const int error = verb();
  hooks->gone(&at, kind, object, error);
  return error;
}

}  // namespace rocemu::provider::checked
