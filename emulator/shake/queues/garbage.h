// Failed completions with garbage in every field that has no meaning: of those only wr_id, status,
// qp_num and vendor_err have one (ibv_poll_cq(3)). The values are verbs_shim/abi/garbage.h's, as
// far as a CQE has room for them.
//
// Guarantees: completions of tag matching keep their fields, since their errors come with a tag
// (ibv_create_srq_ex(3)).
#pragma once

#include <cstdint>

#include "emulator/shake/queues/passing_ring.h"

namespace rocemu::shake {

class Garbage final : public PassingRing {
 public:
  // `done` counts the completions.
  Garbage(std::unique_ptr<device::CompletionRing> inner, uint64_t& done)
      : PassingRing(std::move(inner)), done_(done) {}
  bool push(const transport::Completion& completion) noexcept override;

 private:
  uint64_t& done_;
};

}  // namespace rocemu::shake
