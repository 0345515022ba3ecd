// Address vectors on their way to the NIC, which resolves them.
#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/abi/services.h"

namespace rocemu::provider {

rocemu_ah_attr to_address_vector(const ibv_ah_attr& from);

}  // namespace rocemu::provider
