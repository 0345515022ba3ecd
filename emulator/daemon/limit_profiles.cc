#include "emulator/daemon/limit_profiles.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

using device::DeviceLimits;

constexpr uint32_t kMax24Bits = (1u << 24) - 1;  // the most objects of a kind that the NIC can have
constexpr uint32_t kMaxKeys = 1u << 23;

struct Profile {
  const char* name;
  DeviceLimits limits;
};

// The limits that ibv_devinfo -v shows of a ConnectX-6, as far as this NIC can: it has half as many
// QPs, and as many regions, windows, CQs and address handles as it can have.
constexpr DeviceLimits mlx5_like() {
  DeviceLimits limits;
  limits.max_qp = 65536;
  limits.max_qp_wr = 32768;
  limits.max_sge = 30;
  limits.max_cq = kMax24Bits;
  limits.max_cqe = 4194303;
  limits.max_mr = limits.max_mw = kMaxKeys;
  limits.max_pd = 8388608;
  limits.max_ah = kMax24Bits;
  limits.max_srq = 8388608;
  limits.max_srq_wr = 32767;
  limits.max_srq_sge = 31;
  limits.max_mcast_grp = 2097152;
  limits.max_mcast_qp_attach = 240;
  limits.max_total_mcast_qp_attach = kMax24Bits;
  limits.max_qp_rd_atom = 16;
  limits.max_msg_size = 1u << 30;
  return limits;
}

// The limits of rxe_param.h of Linux.
constexpr DeviceLimits rxe_like() {
  DeviceLimits limits;
  limits.max_qp = 0x10000;
  limits.max_qp_wr = 0x4000;
  limits.max_sge = 32;
  limits.max_cq = 16384;
  limits.max_cqe = (1u << 15) - 1;
  limits.max_mr = 256 * 1024;
  limits.max_pd = 0x7ffc;
  limits.max_contexts = 512;
  limits.max_ah = 100;
  limits.max_srq = 960;
  limits.max_srq_wr = 0x4000;
  limits.max_srq_sge = 27;
  limits.max_mcast_grp = 8192;
  limits.max_mcast_qp_attach = 56;
  limits.max_total_mcast_qp_attach = 0x70000;
  limits.max_qp_rd_atom = 128;
  limits.max_inline_data = 400;
  limits.max_msg_size = 0x800000;
  return limits;
}

// Each limit is the least that a device has which RoCE programs meet: rxe's, but for the elements
// of a request (qedr, RDMA_MAX_SGE_PER_SQ_WQE), inline data (hns of HIP08,
// HNS_ROCE_V2_MAX_SQ_INLINE), READs under way (ConnectX) and completion vectors.
constexpr DeviceLimits smallest_common() {
  DeviceLimits limits = rxe_like();
  limits.max_sge = 4;
  limits.max_srq_sge = 4;
  limits.max_inline_data = 32;
  limits.max_qp_rd_atom = 16;
  limits.num_comp_vectors = 1;
  return limits;
}

// A device with little of everything shows where a program expects more than it may.
constexpr DeviceLimits small() {
  DeviceLimits limits;
  limits.max_qp = 64;
  limits.max_qp_wr = 128;
  limits.max_sge = 4;
  limits.max_cq = 64;
  limits.max_cqe = 1024;
  limits.max_mr = 64;
  limits.max_mw = 16;
  limits.max_pd = 16;
  limits.max_contexts = 16;
  limits.max_channels = 32;
  limits.max_ah = 32;
  limits.max_srq = 8;
  limits.max_srq_wr = 128;
  limits.max_srq_sge = 2;
  limits.max_xrcd = 4;
  limits.max_mcast_grp = 8;
  limits.max_mcast_qp_attach = 8;
  limits.max_total_mcast_qp_attach = 32;
  limits.max_qp_rd_atom = 4;
  limits.max_inline_data = 64;
  limits.max_mr_size = 1u << 30;
  limits.max_dm_size = 65536;
  limits.max_msg_size = 1u << 24;
  limits.num_comp_vectors = 1;
  return limits;
}

constexpr Profile kProfiles[] = {{"default", {}},
                                 {"mlx5-like", mlx5_like()},
                                 {"rxe-like", rxe_like()},
                                 {"smallest-common", smallest_common()},
                                 {"small", small()}};

}  // namespace

std::vector<std::string> limit_profile_names() {
  std::vector<std::string> names;
  for (const Profile& profile : kProfiles) names.emplace_back(profile.name);
  return names;
}

std::optional<DeviceLimits> limit_profile(const std::string& name) {
  for (const Profile& profile : kProfiles)
    if (name == profile.name) return profile.limits;
  return std::nullopt;
}

DeviceLimits smaller_limits(const DeviceLimits& one, const DeviceLimits& other) {
  DeviceLimits limits = one;
  constexpr uint32_t DeviceLimits::*kLimits[] = {
      &DeviceLimits::max_qp,          &DeviceLimits::max_qp_wr,
      &DeviceLimits::max_sge,         &DeviceLimits::max_cq,
      &DeviceLimits::max_cqe,         &DeviceLimits::max_mr,
      &DeviceLimits::max_mw,          &DeviceLimits::max_pd,
      &DeviceLimits::max_contexts,    &DeviceLimits::max_channels,
      &DeviceLimits::max_ah,          &DeviceLimits::max_srq,
      &DeviceLimits::max_srq_wr,      &DeviceLimits::max_srq_sge,
      &DeviceLimits::max_srq_tags,    &DeviceLimits::max_xrcd,
      &DeviceLimits::max_mcast_grp,   &DeviceLimits::max_mcast_qp_attach,
      &DeviceLimits::max_qp_rd_atom,  &DeviceLimits::max_total_mcast_qp_attach,
      &DeviceLimits::max_inline_data, &DeviceLimits::max_msg_size,
      &DeviceLimits::num_comp_vectors};
  for (uint32_t DeviceLimits::*const limit : kLimits)
    limits.*limit = std::min(one.*limit, other.*limit);
  limits.max_mr_size = std::min(one.max_mr_size, other.max_mr_size);
  limits.max_dm_size = std::min(one.max_dm_size, other.max_dm_size);
  return limits;
}

}  // namespace rocemu::daemon
