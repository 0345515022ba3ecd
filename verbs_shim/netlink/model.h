// Model is what the answers are about: a NIC, asked as verbs_shim/abi/resources.h says.
#pragma once

#include "verbs_shim/abi/resources.h"

namespace rocemu::netlink {

// The calls fill in the reply but for its header, and answer 0 or an errno. What they fill in is
// checked here as anything from another process.
struct Model {
  void* nic;
  int (*describe)(void* nic, uint32_t device_index, rocemu_device_description& reply);
  int (*list)(void* nic, const rocemu_list_resources& request, rocemu_resources& reply);
  int (*counters)(void* nic, const rocemu_named_counters_of& request, rocemu_named_counters& reply);
};

}  // namespace rocemu::netlink
