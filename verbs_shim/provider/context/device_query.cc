#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>

#include "verbs_shim/abi/memory.h"
#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {
namespace {

constexpr uint64_t kHashFields = 0xff;  // addresses and ports of IPv4, IPv6, TCP and UDP

int as_int(uint32_t value) { return static_cast<int>(std::min<uint32_t>(value, INT32_MAX)); }

void translate(const rocemu_device_attr& from, ibv_device_attr& to) {
  snprintf(to.fw_ver, sizeof(to.fw_ver), "%.*s", ROCEMU_NAME_MAX, from.fw_ver);
  to.node_guid = from.node_guid;
  to.sys_image_guid = from.sys_image_guid;
  to.max_mr_size = from.max_mr_size;
  to.page_size_cap = from.page_size_cap;
  to.vendor_id = from.vendor_id;
  to.vendor_part_id = from.vendor_part_id;
  to.hw_ver = from.hw_ver;
  to.max_qp = as_int(from.max_qp);
  to.max_qp_wr = as_int(from.max_qp_wr);
  to.device_cap_flags = static_cast<unsigned>(from.device_cap_flags);
  to.max_sge = as_int(from.max_sge);
  to.max_sge_rd = as_int(from.max_sge_rd);
  to.max_cq = as_int(from.max_cq);
  to.max_cqe = as_int(from.max_cqe);
  to.max_mr = as_int(from.max_mr);
  to.max_pd = as_int(from.max_pd);
  to.max_qp_rd_atom = as_int(from.max_qp_rd_atom);
  to.max_res_rd_atom = as_int(from.max_res_rd_atom);
  to.max_qp_init_rd_atom = as_int(from.max_qp_init_rd_atom);
  to.atomic_cap = static_cast<ibv_atomic_cap>(from.atomic_cap);
  to.max_mw = as_int(from.max_mw);
  to.max_mcast_grp = as_int(from.max_mcast_grp);
  to.max_mcast_qp_attach = as_int(from.max_mcast_qp_attach);
  to.max_total_mcast_qp_attach = as_int(from.max_total_mcast_qp_attach);
  to.max_ah = as_int(from.max_ah);
  to.max_srq = as_int(from.max_srq);
  to.max_srq_wr = as_int(from.max_srq_wr);
  to.max_srq_sge = as_int(from.max_srq_sge);
  to.max_pkeys = static_cast<uint16_t>(from.max_pkeys);
  to.local_ca_ack_delay = static_cast<uint8_t>(from.local_ca_ack_delay);
  to.max_raw_ethy_qp = as_int(from.max_raw_qp);
  to.phys_port_cnt = static_cast<uint8_t>(std::min<uint32_t>(from.phys_port_cnt, UINT8_MAX));
}

int query_extended(DeviceContext& context, ibv_device_attr_ex& to) {
  struct {
    rocemu_header header;
  } request;
  rocemu_device_attr_ex reply;
  if (const int error = context.call(ROCEMU_OP_QUERY_DEVICE_EX, request, reply); error != 0) {
    return error;
  }
  to.max_dm_size = reply.max_dm_size;
  to.odp_caps.general_caps = reply.odp_general_caps;
  to.odp_caps.per_transport_caps.rc_odp_caps = reply.rc_odp_caps;
  to.odp_caps.per_transport_caps.uc_odp_caps = reply.uc_odp_caps;
  to.odp_caps.per_transport_caps.ud_odp_caps = reply.ud_odp_caps;
  to.xrc_odp_caps = reply.xrc_odp_caps;
  to.cq_mod_caps.max_cq_count = reply.max_cq_count;
  to.cq_mod_caps.max_cq_period = reply.max_cq_period_us;
  to.packet_pacing_caps.qp_rate_limit_min = reply.min_rate_kbps;
  to.packet_pacing_caps.qp_rate_limit_max = reply.max_rate_kbps;
  to.packet_pacing_caps.supported_qpts = reply.rate_limit_qpts;
  return 0;
}

}  // namespace

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, size_t attr_bytes) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  // ibv_query_device asks for the first member alone; programs built with other versions of the
  // header, for more or less of the rest.
  if (attr_bytes < sizeof(attr->orig_attr)) return EINVAL;
  struct {
    rocemu_header header;
  } request;
  rocemu_device_attr reply;
  if (const int error = to_context(context).call(ROCEMU_OP_QUERY_DEVICE, request, reply);
      error != 0) {
    return error;
  }
  ibv_device_attr_ex full = {};
  translate(reply, full.orig_attr);
  full.completion_timestamp_mask = reply.completion_timestamp_mask;
  if (reply.max_raw_qp != 0) {
    full.max_wq_type_rq = reply.max_raw_qp;
    full.rss_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
    full.rss_caps.max_rwq_indirection_tables = reply.max_raw_qp;
    full.rss_caps.max_rwq_indirection_table_size = ROCEMU_FLOW_RECEIVERS_MAX;
    full.rss_caps.rx_hash_fields_mask = kHashFields;
    full.rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
    full.tso_caps.max_tso = ROCEMU_TSO_BYTES_MAX;
    full.tso_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
  }
  full.tm_caps.max_rndv_hdr_size = ROCEMU_RENDEZVOUS_BYTES_MAX;
  full.tm_caps.max_num_tags = ROCEMU_TAGS_MAX;
  full.tm_caps.max_ops = ROCEMU_TAGS_MAX;
  full.tm_caps.max_sge = ROCEMU_TAG_SGE_MAX;
  full.tm_caps.flags = IBV_TM_CAP_RC;
  full.hca_core_clock = reply.hca_core_clock_khz;
  full.device_cap_flags_ex = reply.device_cap_flags;
  if (attr_bytes > sizeof(attr->orig_attr)) {
    if (const int error = query_extended(to_context(context), full); error != 0) return error;
  }
  full.phys_port_cnt_ex = reply.phys_port_cnt;
  memset(static_cast<void*>(attr), 0, attr_bytes);
  memcpy(static_cast<void*>(attr), &full, std::min(attr_bytes, sizeof(full)));
  return 0;
}

// The device's clock is the machine's monotonic one. Like other providers, all of it stands in
// tv_nsec.
int query_rt_values(ibv_context*, ibv_values_ex* values) {
  if ((values->comp_mask & ~uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  if (values->comp_mask == 0) return 0;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  values->raw_clock.tv_sec = 0;
  values->raw_clock.tv_nsec = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attr) {
  static_assert(offsetof(ibv_device_attr_ex, orig_attr) == 0);
  return query_device_ex(context, nullptr, reinterpret_cast<ibv_device_attr_ex*>(attr),
                         sizeof(*attr));
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr) {
  rocemu_query_port request = {};
  request.port_num = port;
  rocemu_port_attr reply;
  if (const int error = to_context(context).call(ROCEMU_OP_QUERY_PORT, request, reply);
      error != 0) {
    return error;
  }
  *attr = {};
  attr->state = static_cast<ibv_port_state>(reply.state);
  attr->max_mtu = static_cast<ibv_mtu>(reply.max_mtu);
  attr->active_mtu = static_cast<ibv_mtu>(reply.active_mtu);
  attr->gid_tbl_len = as_int(reply.gid_tbl_len);
  attr->port_cap_flags = reply.port_cap_flags;
  attr->max_msg_sz = reply.max_msg_sz;
  attr->pkey_tbl_len = static_cast<uint16_t>(reply.pkey_tbl_len);
  attr->max_vl_num = static_cast<uint8_t>(reply.max_vl_num);
  attr->active_width = static_cast<uint8_t>(reply.active_width);
  attr->active_speed = static_cast<uint8_t>(reply.active_speed);
  attr->phys_state = static_cast<uint8_t>(reply.phys_state);
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->flags = IBV_QPF_GRH_REQUIRED;
  return 0;
}

}  // namespace rocemu::provider
