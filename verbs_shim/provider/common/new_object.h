// Objects on the C heap: the library links no C++ runtime, which operator new would need.
#pragma once

#include <stdlib.h>

#include <new>

namespace rocemu::provider {

// Null without memory; what T doesn't initialise is zero.
template <typename T>
T* new_object() {
  void* memory = calloc(1, sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T;
}

template <typename T>
void delete_object(T* object) {
  object->~T();
  free(object);
}

}  // namespace rocemu::provider
