#include "emulator/daemon/control/device_description.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/verbs/numbers.h"
#include "emulator/daemon/attachment/port_description.h"

namespace rocemu::daemon {
namespace {

constexpr uint64_t kPageSizeCap = ~uint64_t{0xfff};  // any page size from 4 KiB
constexpr uint64_t kTimestampClockKhz = 1'000'000;   // completions are stamped in nanoseconds
constexpr uint32_t kLocalCaAckDelay = 15;  // 4.096 us * 2^15: an engine that lost its core

constexpr uint32_t kPhysDisabled = 3;  // states of the IBTA's PortPhysicalState
constexpr uint32_t kPhysLinkUp = 5;
constexpr uint32_t kWidth4x = 2;
constexpr uint32_t kSpeedEdr = 32;
constexpr uint32_t kOneVl = 1;

}  // namespace

uint32_t ibv_mtu(uint32_t mtu_bytes) {
  const uint32_t clamped = std::clamp(mtu_bytes, 256u, 4096u);
  return static_cast<uint32_t>(std::bit_width(clamped)) - 8;
}

rocemu_device_attr describe_device(const device::HcaConfig& config) {
  using namespace verbs::device_cap;  // those in device_cap_flags hold for this device, no others
  const device::DeviceLimits& limits = config.limits;
  rocemu_device_attr attr{};
  std::strncpy(attr.fw_ver, ROCEMU_VERSION, sizeof(attr.fw_ver) - 1);
  attr.node_guid = htobe64(config.node_guid);
  attr.sys_image_guid = htobe64(config.node_guid);
  attr.max_mr_size = limits.max_mr_size;
  attr.page_size_cap = kPageSizeCap;
  attr.device_cap_flags = kCurrQpStateMod | kSysImageGuid | kRcRnrNakGen | kSrqResize |
                          kMemoryWindow | kXrc | kMemoryManagement | kMemoryWindowType2b |
                          kAtomicWrite | kFlushGlobal | kAutomaticPathMigration;
  if (config.port.carries_all_frames) {
    attr.device_cap_flags |= kManagedFlowSteering;
    attr.max_raw_qp = limits.max_qp;
  }
  attr.hca_core_clock_khz = kTimestampClockKhz;
  attr.completion_timestamp_mask = std::numeric_limits<uint64_t>::max();
  attr.vendor_id = device::kVendorId;
  attr.vendor_part_id = device::kVendorPartId;
  attr.hw_ver = 0;
  attr.max_qp = limits.max_qp;
  attr.max_qp_wr = limits.max_qp_wr;
  attr.max_sge = limits.max_sge;
  attr.max_sge_rd = limits.max_sge;
  attr.max_cq = limits.max_cq;
  attr.max_cqe = limits.max_cqe;
  attr.max_mr = limits.max_mr;
  attr.max_pd = limits.max_pd;
  attr.max_mw = limits.max_mw;
  attr.max_qp_rd_atom = limits.max_qp_rd_atom;
  attr.max_res_rd_atom = static_cast<uint32_t>(std::min<uint64_t>(
      uint64_t{limits.max_qp_rd_atom} * limits.max_qp, std::numeric_limits<int32_t>::max()));
  attr.max_qp_init_rd_atom = limits.max_qp_rd_atom;
  attr.atomic_cap = verbs::kAtomicHca;
  attr.max_ah = limits.max_ah;
  attr.max_srq = limits.max_srq;
  attr.max_srq_wr = limits.max_srq_wr;
  attr.max_srq_sge = limits.max_srq_sge;
  attr.max_mcast_grp = limits.max_mcast_grp;
  attr.max_mcast_qp_attach = limits.max_mcast_qp_attach;
  attr.max_total_mcast_qp_attach = limits.max_total_mcast_qp_attach;
  attr.max_pkeys = 1;
  attr.local_ca_ack_delay = kLocalCaAckDelay;
  attr.phys_port_cnt = 1;
  attr.max_inline_data = limits.max_inline_data;
  return attr;
}

rocemu_device_attr_ex describe_device_ex(const device::HcaConfig& config) {
  using namespace verbs::odp;
  rocemu_device_attr_ex attr{};
  attr.max_dm_size = config.limits.max_dm_size;
  attr.odp_general_caps = kSupport | kSupportImplicit;
  attr.rc_odp_caps =
      kSend | kReceive | kWrite | kRead | kAtomic | kSrqReceive | kFlush | kAtomicWrite;
  attr.uc_odp_caps = kSend | kReceive | kWrite | kSrqReceive;
  attr.ud_odp_caps = kSend | kReceive | kSrqReceive;
  // FLUSH and ATOMIC WRITE are of RC alone.
  attr.xrc_odp_caps = attr.rc_odp_caps & ~(kFlush | kAtomicWrite);
  attr.max_cq_count = attr.max_cq_period_us = std::numeric_limits<uint16_t>::max();
  namespace type = verbs::qp_type;
  for (const uint8_t sender : {type::kRc, type::kUc, type::kUd, type::kXrcSend})
    attr.rate_limit_qpts |= 1u << sender;
  if (config.port.carries_all_frames) attr.rate_limit_qpts |= 1u << type::kRawPacket;
  attr.min_rate_kbps = device::kMinRateKbps;
  attr.max_rate_kbps = device::kMaxRateKbps;
  return attr;
}

rocemu_port_attr describe_port(const device::PortConfig& port, const device::DeviceLimits& limits) {
  rocemu_port_attr attr{};
  attr.state = port.active ? verbs::kPortActive : verbs::kPortDown;
  attr.max_mtu = verbs::kMtu4096;
  attr.active_mtu = ibv_mtu(port.mtu_bytes);
  attr.gid_tbl_len = static_cast<uint32_t>(gid_table_length(port));
  attr.port_cap_flags = verbs::kPortCmSup | verbs::kPortIpBasedGids;
  attr.max_msg_sz = limits.max_msg_size;
  attr.pkey_tbl_len = 1;
  attr.active_width = kWidth4x;
  attr.active_speed = kSpeedEdr;
  attr.phys_state = port.active ? kPhysLinkUp : kPhysDisabled;
  attr.max_vl_num = kOneVl;
  return attr;
}

}  // namespace rocemu::daemon
