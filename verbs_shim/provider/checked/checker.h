// The checker, librocemu-check.so, and what a call of the program's is to it.
#pragma once

#include "verbs_shim/abi/check.h"

namespace rocemu::provider {
struct DeviceContext;
}

namespace rocemu::provider::checked {

// The checker's hooks. Null until start() has loaded it.
extern const rocemu_check_hooks* hooks;

// Loads the checker when ROCEMU_CHECK asks for it, once for a process, and tells it of a context
// that was just opened. False when the context isn't to be checked: nobody asks for it, or the
// library can't be loaded, which is said.
bool start(DeviceContext& context);

}  // namespace rocemu::provider::checked

// The call of the verb in which this stands.
#define ROCEMU_CHECKED_CALL(name) \
  { name, __builtin_return_address(0), __builtin_frame_address(0) }
