// The places in rdma-core's provider-private structures of what the provider needs of them, by
// rdma-core's package version. The number of the private ABI says less: releases have added members
// to struct verbs_context_ops and moved struct verbs_context without giving it a new one. Held by a
// unit test against what the compiler says of each release's own header
// (scripts/rdma_core_layouts.py).
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

#include <string_view>

namespace rocemu::provider {

// The releases that share a number of the private ABI.
struct PrivateAbi {
  int number;
  int oldest;
  int newest;
};
inline constexpr int kNoEnd = 1 << 20;
inline constexpr PrivateAbi kPrivateAbis[] = {{25, 28, 32}, {33, 33, 33}, {34, 34, 56},
                                              {57, 57, 58}, {59, 59, 63}, {64, 64, 64},
                                              {65, 65, 65}};

// The release whose layouts are used for a library of `version`, whose private ABI has `number`:
// the nearest one that is known; without a version (0) the newest.
constexpr int known_release(int number, int version) {
  for (const PrivateAbi& abi : kPrivateAbis) {
    if (abi.number != number) continue;
    if (version == 0 || version > abi.newest) return abi.newest;
    return version < abi.oldest ? abi.oldest : version;
  }
  return 0;
}

// Members of struct verbs_context_ops, pointers in the order of the alphabet, that not every
// release has. Those that are not named here have always been there.
struct OpReleases {
  std::string_view op;
  int first;
  int last;
};
inline constexpr OpReleases kOpReleases[] = {
    {"alloc_buf", 64, kNoEnd},
    {"alloc_dmah", 59, kNoEnd},
    {"create_comp_cntr", 65, kNoEnd},
    {"dealloc_dmah", 59, kNoEnd},
    {"destroy_comp_cntr", 65, kNoEnd},
    {"dm_export_dmabuf_fd", 62, kNoEnd},
    {"free_buf", 64, kNoEnd},
    {"import_dm", 35, kNoEnd},
    {"import_mr", 31, kNoEnd},
    {"import_pd", 31, kNoEnd},
    {"inc_comp_cntr", 65, kNoEnd},
    {"inc_err_comp_cntr", 65, kNoEnd},
    {"qp_attach_comp_cntr", 65, kNoEnd},
    {"query_comp_cntr_caps", 65, kNoEnd},
    {"query_device", 0, 32},
    {"query_ece", 31, kNoEnd},
    {"query_port_speed", 62, kNoEnd},
    {"query_qp_data_in_order", 36, kNoEnd},
    {"read_comp_cntr", 65, kNoEnd},
    {"read_err_comp_cntr", 65, kNoEnd},
    {"reg_dmabuf_mr", 34, kNoEnd},
    {"reg_mr_ex", 59, kNoEnd},
    {"set_comp_cntr", 65, kNoEnd},
    {"set_ece", 31, kNoEnd},
    {"set_err_comp_cntr", 65, kNoEnd},
    {"unimport_dm", 35, kNoEnd},
    {"unimport_mr", 31, kNoEnd},
    {"unimport_pd", 31, kNoEnd},
};

constexpr bool has_op(int release, std::string_view op) {
  for (const OpReleases& entry : kOpReleases)
    if (entry.op == op) return release >= entry.first && release <= entry.last;
  return true;
}

// struct verbs_context ends in the public struct ibv_context; the functions of extended verbs,
// which libibverbs fills, stand before it and grow downwards.
constexpr size_t context_offset(int release) {
  if (release >= 64) return 368;
  if (release >= 62) return 352;
  return release >= 59 ? 344 : 320;
}

// The offset of comp_mask in struct verbs_qp, an ibv_qp_ex with private members behind it. It has
// got a function in 44 and one in 45.
constexpr size_t qp_comp_mask_offset(int release) {
  constexpr size_t kOldest = offsetof(ibv_qp_ex, wr_abort) + sizeof(ibv_qp_ex::wr_abort);
  return kOldest + sizeof(void*) * ((release >= 44) + (release >= 45));
}

// The first release whose ibv_qp_ex has wr_flush, as its last member.
constexpr int kFirstWithFlush = 45;
constexpr size_t kFlushOffset = qp_comp_mask_offset(kFirstWithFlush) - sizeof(void*);

// struct verbs_device_ops has import_context.
constexpr bool has_import_context(int release) { return release >= 31; }

}  // namespace rocemu::provider
