// The functions that ibv_cq_ex and ibv_qp_ex hold, replaced by checked ones.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace rocemu::provider::checked {

// Remember the ordinary functions, which the checked ones call. To be called before any other here.
void remember_poll_functions();
void remember_work_request_functions();

// poll.cc: those that `cq` offers.
void check_poll_functions(ibv_cq_ex& cq);
// work_request.cc: those of `ops`, IBV_QP_EX_WITH_ flags.
void check_work_request_functions(ibv_qp_ex& qp, uint64_t ops);

}  // namespace rocemu::provider::checked
