// stat() and its like before glibc 2.33, where programs have them as functions of their own that
// call __xstat() and its like.
#pragma once

#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

// Fills in those of `functions` that were not found, by what there was in their place.
void use_old_stat(Real& functions);

}  // namespace rocemu::preload
