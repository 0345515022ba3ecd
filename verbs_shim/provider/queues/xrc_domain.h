#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace rocemu::provider {

struct XrcDomain {
  ibv_xrcd xrcd;
  uint32_t handle;
};

inline XrcDomain& to_domain(ibv_xrcd* xrcd) { return *reinterpret_cast<XrcDomain*>(xrcd); }

}  // namespace rocemu::provider
