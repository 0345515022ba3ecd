// rdma-core's struct verbs_context_ops, as the release at hand has it.
#pragma once

#include <stddef.h>

namespace rocemu::provider {

// A member of the structure: a pointer to a function, whose type only libibverbs needs to know.
using Op = void (*)();

inline constexpr size_t kMaxOps = 96;

struct OpList {
  Op ops[kMaxOps] = {};
};

// The members that `release` has (layouts.h), in its order: the provider's verbs, or those of
// programs that are checked. Null where libibverbs answers EOPNOTSUPP by itself.
OpList list_ops(int release, bool checked);

}  // namespace rocemu::provider
