// Which attributes of a QP a change names: the bits of enum ibv_qp_attr_mask, which are part of the
// ABI between programs and kernels (ibv_modify_qp(3)).
#pragma once

#include <cstdint>

namespace rocemu::cm::qp_attribute {

enum Mask : uint32_t {
  kState = 1u << 0,
  kCurState = 1u << 1,
  kEnSqdAsyncNotify = 1u << 2,
  kAccessFlags = 1u << 3,
  kPkeyIndex = 1u << 4,
  kPort = 1u << 5,
  kQkey = 1u << 6,
  kAv = 1u << 7,
  kPathMtu = 1u << 8,
  kTimeout = 1u << 9,
  kRetryCount = 1u << 10,
  kRnrRetry = 1u << 11,
  kRqPsn = 1u << 12,
  kMaxQpRdAtomic = 1u << 13,
  kAltPath = 1u << 14,
  kMinRnrTimer = 1u << 15,
  kSqPsn = 1u << 16,
  kMaxDestRdAtomic = 1u << 17,
  kPathMigState = 1u << 18,
  kCap = 1u << 19,
  kDestQpn = 1u << 20,
  kRateLimit = 1u << 25,
};

}  // namespace rocemu::cm::qp_attribute
