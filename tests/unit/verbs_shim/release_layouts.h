// Written by scripts/rdma_core_layouts.py from rdma-core's own headers, x86-64: each release that
// differs from the one before.
// clang-format off
#pragma once

#include <cstddef>

namespace rocemu::provider {

struct ReleaseLayout {
  int release;
  int private_abi;
  size_t context_offset;       // of struct verbs_context
  size_t comp_mask_offset;     // of struct verbs_qp
  bool has_import_context;     // struct verbs_device_ops
  const char* ops;             // of struct verbs_context_ops: which came and went
};

inline constexpr ReleaseLayout kReleaseLayouts[] = {
    {28, 25, 320, 344, false, "+advise_mr +alloc_dm +alloc_mw +alloc_null_mr +alloc_parent_domain +alloc_pd +alloc_td +async_event +attach_counters_point_flow +attach_mcast +bind_mw +close_xrcd +cq_event +create_ah +create_counters +create_cq +create_cq_ex +create_flow +create_flow_action_esp +create_qp +create_qp_ex +create_rwq_ind_table +create_srq +create_srq_ex +create_wq +dealloc_mw +dealloc_pd +dealloc_td +dereg_mr +destroy_ah +destroy_counters +destroy_cq +destroy_flow +destroy_flow_action +destroy_qp +destroy_rwq_ind_table +destroy_srq +destroy_wq +detach_mcast +free_context +free_dm +get_srq_num +modify_cq +modify_flow_action_esp +modify_qp +modify_qp_rate_limit +modify_srq +modify_wq +open_qp +open_xrcd +poll_cq +post_recv +post_send +post_srq_ops +post_srq_recv +query_device +query_device_ex +query_port +query_qp +query_rt_values +query_srq +read_counters +reg_dm_mr +reg_mr +req_notify_cq +rereg_mr +resize_cq"},
    {31, 25, 320, 344, true, "+import_mr +import_pd +query_ece +set_ece +unimport_mr +unimport_pd"},
    {33, 33, 320, 344, true, "-query_device"},
    {34, 34, 320, 344, true, "+reg_dmabuf_mr"},
    {35, 34, 320, 344, true, "+import_dm +unimport_dm"},
    {36, 34, 320, 344, true, "+query_qp_data_in_order"},
    {44, 34, 320, 352, true, ""},
    {45, 34, 320, 360, true, ""},
    {57, 57, 320, 360, true, ""},
    {59, 59, 344, 360, true, "+alloc_dmah +dealloc_dmah +reg_mr_ex"},
    {62, 59, 352, 360, true, "+dm_export_dmabuf_fd +query_port_speed"},
    {64, 64, 368, 360, true, "+alloc_buf +free_buf"},
    {65, 65, 368, 360, true, "+create_comp_cntr +destroy_comp_cntr +inc_comp_cntr +inc_err_comp_cntr +qp_attach_comp_cntr +query_comp_cntr_caps +read_comp_cntr +read_err_comp_cntr +set_comp_cntr +set_err_comp_cntr"},
};

}  // namespace rocemu::provider
