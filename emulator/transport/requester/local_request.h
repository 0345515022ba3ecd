// Requests that send nothing: a memory window is bound, or a key is invalidated (IBTA vol 1, 10.6.7
// and 11.4.1.1). Over RC, XRC and UC.
#pragma once

#include "emulator/transport/interface/work.h"
#include "emulator/transport/qp/qp_context.h"

namespace rocemu::transport {

// Executes a request that is_local(). Returns the status that it completes with.
WcStatus execute_local(const QpContext& context, const SendWork& work);

}  // namespace rocemu::transport
