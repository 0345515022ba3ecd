// The kinds of objects that the kernel's RDMA core tells of by netlink, and what it says of each
// (drivers/infiniband/core/nldev.c, fill_res_*_entry).
#pragma once

#include <stdint.h>

#include "verbs_shim/abi/resources.h"
#include "verbs_shim/netlink/message_writer.h"

namespace rocemu::netlink {

struct Objects {
  uint16_t command;           // enum rdma_nldev_command
  uint32_t kind;              // enum rocemu_resource_kind
  const char* name;           // in summaries
  uint16_t table_attribute;   // enum rdma_nldev_attr
  uint16_t entry_attribute;   // of one in the table
  uint16_t number_attribute;  // by which a request asks for one
  bool on_ports;              // a request may ask for those of a port
};

// Those that the command asks for; null: it asks for none.
const Objects* objects_of(uint16_t command);

// All of them, in the order of the kernel's summaries.
inline constexpr unsigned kObjectsKinds = 7;
extern const Objects kObjects[kObjectsKinds];

// Puts what is said of one of that kind.
void put_object(MessageWriter& writer, uint32_t kind, const rocemu_resource& object);

// Puts the process, unless the NIC does not see it.
void put_process(MessageWriter& writer, const rocemu_resource& object);

}  // namespace rocemu::netlink
