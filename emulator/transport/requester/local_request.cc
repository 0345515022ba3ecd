#include "emulator/transport/requester/local_request.h"

namespace rocemu::transport {

WcStatus execute_local(const QpContext& context, const SendWork& work) {
  const PdHandle pd = context.resources.pd;
  if (work.opcode == WorkOpcode::bind_window) {
    return context.memory.bind_window(pd, context.qpn, work.binding) ? WcStatus::success
                                                                     : WcStatus::window_bind_error;
  }
  return context.memory.invalidate(pd, context.qpn, work.rkey) ? WcStatus::success
                                                               : WcStatus::local_qp_operation_error;
}

}  // namespace rocemu::transport
