// What destroying something that may be in use is to come to.
#pragma once

#include <cerrno>
#include <cstdint>

namespace rocemu::fuzz {

// Of one of the model's maps whose objects count their users.
template <class Objects>
int expected_outcome(const Objects& objects, uint32_t handle) {
  const auto found = objects.find(handle);
  if (found == objects.end()) return EINVAL;
  return found->second.users > 0 ? EBUSY : 0;
}

}  // namespace rocemu::fuzz
