#pragma once

#include <span>
#include <string>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {

// The first word of a fault: where.
inline std::string device_of(const Device& device) { return device.name(); }

// A SEND from one end to the other, which succeeds.
inline void send_one(Ends& ends) {
  post_recv_ok(ends.b.qp.get(), 1, ends.b.sge(0, 100));
  post(ends.a, IBV_WR_SEND, 10, ends.a.sge(0, 100), ends.b);
  expect_completion(ends.a.send_cq.get(), 10, {IBV_WC_SUCCESS});
  expect_completion(ends.b.recv_cq.get(), 1, {IBV_WC_SUCCESS});
}

std::span<const Row> queue_fault_rows();
std::span<const Row> port_fault_rows();
std::span<const Row> call_fault_rows();

}  // namespace rocemu::e2e
