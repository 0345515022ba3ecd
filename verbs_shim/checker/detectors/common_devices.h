// Says in words what devices that RoCE programs meet grant, for a program that asked for too much:
// the numbers of ibv_devinfo -v of a ConnectX-6 (mlx5), of rxe_param.h, and the least known ones,
// of qedr (RDMA_MAX_SGE_PER_SQ_WQE) and of hns' HIP08 (HNS_ROCE_V2_MAX_SQ_INLINE), all of Linux.
#pragma once

namespace rocemu::check::common_devices {

inline constexpr const char* kQueueRequests = "mlx5 grants 32768, rxe 16384";
inline constexpr const char* kElements = "rxe grants 32, mlx5 30, qedr 4";
inline constexpr const char* kInlineBytes = "rxe grants 400, hns 32";
inline constexpr const char* kCqEntries = "mlx5 grants 4194303, rxe 32767";
inline constexpr const char* kSrqRequests = "mlx5 grants 32767, rxe 16384";

}  // namespace rocemu::check::common_devices
