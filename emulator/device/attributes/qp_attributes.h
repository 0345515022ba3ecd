// A QP's attributes with the meaning of struct ibv_qp_attr, and which of them each state change
// takes (IBTA vol 1, 11.2.5.2; ibv_modify_qp(3)).
#pragma once

#include <cstdint>

#include "base/verbs/numbers.h"
#include "emulator/transport/interface/attributes.h"
#include "emulator/wire/types.h"

namespace rocemu::device {

struct AhAttr {
  wire::Gid dgid{};
  uint32_t flow_label = 0;
  uint8_t sgid_index = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
  bool is_global = false;
  uint16_t dlid = 0;
  uint8_t sl = 0;
  uint8_t src_path_bits = 0;
  uint8_t static_rate = 0;
  uint8_t port_num = 0;
};

struct QpAttr {
  uint32_t qp_state = 0;
  uint32_t cur_qp_state = 0;
  uint32_t path_mtu = 0;
  uint32_t path_mig_state = 0;
  uint32_t qkey = 0;
  uint32_t rq_psn = 0;
  uint32_t sq_psn = 0;
  uint32_t dest_qp_num = 0;
  uint32_t qp_access_flags = 0;
  AhAttr ah{};
  AhAttr alt_ah{};
  uint16_t pkey_index = 0;
  uint16_t alt_pkey_index = 0;
  bool en_sqd_async_notify = false;
  bool sq_draining = false;
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t port_num = 0;
  uint8_t timeout = 0;
  uint8_t retry_cnt = 0;
  uint8_t rnr_retry = 0;
  uint8_t alt_port_num = 0;
  uint8_t alt_timeout = 0;
  uint32_t rate_limit = 0;
};

// A QP as whoever looks at both ends of a connection sees it.
struct QpDescription {
  uint32_t context = 0;        // the first one that opened it
  transport::PdHandle pd = 0;  // 0: none
  transport::Service service = transport::Service::rc;
  QpAttr attr{};
  wire::Gid local_gid{};  // the one that `attr.ah` names as the source, or zero
};

using enum verbs::qp_attribute::Mask;

// Attributes of the other end of an XRC connection, which programs give all the same and Linux
// takes out of the mask.
constexpr uint32_t ignored_attributes(transport::Service service) {
  switch (service) {
    case transport::Service::xrc_send:
      return kMaxDestRdAtomic | kMinRnrTimer;
    case transport::Service::xrc_receive:
      return kMaxQpRdAtomic | kRetryCount | kRnrRetry;
    default:
      return 0;
  }
}

// Checks a state change of a QP: 0, or EINVAL when there is no such change, an attribute it needs
// is missing, or one is given that it does not take.
int check_transition(transport::Service service, transport::QpState from, transport::QpState to,
                     uint32_t attr_mask);

}  // namespace rocemu::device
