// A request to the RDMA core of the kernel by netlink (rdma/rdma_netlink.h), taken apart.
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

namespace rocemu::netlink {

// A number that a request may carry.
struct Number {
  bool given = false;
  uint32_t value = 0;
};

inline constexpr size_t kMaxTextBytes = 64;  // names in requests, NUL included

struct Request {
  nlmsghdr header;
  uint16_t command = 0;  // enum rdma_nldev_command
  bool dump = false;     // all of them, in several messages
  Number device;
  Number port;
  Number object;     // the one object that it is about, by its kind's own attribute
  Number statistic;  // STAT_RES: the kind of object that has counters
  Number stat_mode;  // given: asks how counters are bound, not for counters
  char chardev_type[kMaxTextBytes] = {};
};

// The size of the message at the front of `bytes`, padding included; 0 when it is not all there or
// too short for its header.
size_t message_bytes(const char* bytes, size_t length_bytes);

// Takes the message apart: 0, or the errno that it is answered with. EINVAL when it is not what
// rdma/rdma_netlink.h says. Precondition: all of it is there. Sets the header in any case.
int parse_request(const char* message, Request& request);

}  // namespace rocemu::netlink
