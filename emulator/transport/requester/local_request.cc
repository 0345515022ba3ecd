#include "emulator/transport/requester/local_request.h"

namespace rocemu::transport {

WcStatus execute_local(const QpContext& context, const SendWork& work) {
  const PdHandle pd = context.resources.pd;
  if (work.opcode == WorkOpcode::bind_window) {
    return context.memory.bind_window(pd, context.qpn, work.binding) ? WcStatus::success
                                                                     : WcStatus::window_bind_error;
  }
  // IBTA vol 1, 11.6.2: "memory management operation error" is of bindings and invalidations alike.
  return context.memory.invalidate(pd, context.qpn, work.rkey) ? WcStatus::success
                                                               : WcStatus::window_bind_error;
}

}  // namespace rocemu::transport
