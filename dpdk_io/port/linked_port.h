// A port whose link can have impairments: transmit is the direction from the port, receive the one
// to it.
#pragma once

#include "dpdk_io/port/impaired_link.h"
#include "dpdk_io/port/port.h"
#include "impairment/assignment.h"

namespace rocemu::dpdk_io {

struct LinkReport {
  impairment::Spec spec;
  LinkStats stats;  // since the spec was set
};

class LinkedPort : public Port {
 public:
  // A spec without impairments ends them. Frames under way keep their time of arrival. Takes
  // memory; may throw std::bad_alloc.
  virtual void set_link(impairment::Direction direction, const impairment::Spec& spec) = 0;
  virtual LinkReport link(impairment::Direction direction) const = 0;
};

}  // namespace rocemu::dpdk_io
