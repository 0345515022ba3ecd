#include "emulator/shake/queues/garbage.h"

#include "verbs_shim/abi/garbage.h"

namespace rocemu::shake {

using transport::WcStatus;

bool Garbage::push(const transport::Completion& completion) noexcept {
  const WcStatus status = completion.status;
  if (status == WcStatus::success || status == WcStatus::tm_error ||
      status == WcStatus::tm_rendezvous_incomplete)
    return PassingRing::push(completion);
  ++done_;
  transport::Completion spoilt = completion;
  spoilt.opcode = static_cast<transport::WcOpcode>(ROCEMU_GARBAGE_OPCODE & 0xff);
  spoilt.byte_length = ROCEMU_GARBAGE_BYTE_LEN;
  spoilt.immediate = ROCEMU_GARBAGE_IMM_DATA;
  spoilt.source_qp = wire::Qpn{ROCEMU_GARBAGE_SRC_QP};
  spoilt.service_level = ROCEMU_GARBAGE_SL;
  spoilt.has_immediate = true;
  spoilt.has_grh = true;
  spoilt.has_flow_tag = false;
  spoilt.tag_flags = ROCEMU_GARBAGE_WC_FLAGS & 0xff;
  spoilt.inline_data.length_bytes = 0;
  return PassingRing::push(spoilt);
}

}  // namespace rocemu::shake
