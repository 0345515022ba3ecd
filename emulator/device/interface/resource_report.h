// ResourceReport is what the device tells of an object, of whatever kind, to those who look at the
// NIC from outside; a page of them at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "emulator/device/interface/specs.h"
#include "emulator/transport/interface/attributes.h"

namespace rocemu::device {

enum class ResourceKind : uint8_t { context, pd, cq, qp, mr, srq };

// What has no meaning for a kind is 0.
struct ResourceReport {
  uint32_t number = 0;  // the QP's; else one that no other object of the device has
  ContextId context = 0;
  pid_t program = 0;  // 0: the NIC does not see its process
  transport::PdHandle pd = 0;
  uint32_t users = 0;    // of a PD or CQ
  uint32_t entries = 0;  // of a CQ

  // QP
  transport::Service service = transport::Service::rc;
  transport::QpState state = transport::QpState::reset;
  uint32_t port = 0;  // 0 until the QP is on one
  uint32_t remote_qpn = 0;
  uint32_t rq_psn = 0;  // as the program set them
  uint32_t sq_psn = 0;
  uint32_t path_mig_state = 0;

  // region
  uint32_t key = 0;
  uint64_t iova = 0;
  uint64_t length_bytes = 0;

  // SRQ
  bool xrc = false;
  bool tag_matching = false;
};

// A place among the objects of one kind: the context, and the place in its table.
struct ResourceCursor {
  ContextId context = 0;
  uint32_t place = 0;
};

struct ResourcePage {
  std::vector<ResourceReport> reports;
  std::optional<ResourceCursor> next;  // where to go on; empty: that was all
};

}  // namespace rocemu::device
