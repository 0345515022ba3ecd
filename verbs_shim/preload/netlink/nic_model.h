// The NIC as netlink::Model asks it: by a control connection (verbs_shim/abi/resources.h), which is
// made at the first question.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "verbs_shim/netlink/model.h"
#include "verbs_shim/preload/hidden_descriptor.h"

namespace rocemu::preload {

class NicModel {
 public:
  NicModel() = default;
  NicModel(const NicModel&) = delete;
  NicModel& operator=(const NicModel&) = delete;

  // Valid as long as this is there, and stays where it is.
  netlink::Model model();
  // Gives the connection up; the next question makes another.
  void close();

 private:
  int connect();
  int ask(rocemu_header* request, size_t request_bytes, uint32_t op, rocemu_header* reply,
          size_t reply_bytes);
  int exchange(rocemu_header* request, rocemu_header* reply, size_t reply_bytes);

  HiddenDescriptor nic_;
  uint64_t cookie_ = 0;
};

}  // namespace rocemu::preload
