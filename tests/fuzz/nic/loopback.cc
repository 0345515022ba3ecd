#include "tests/fuzz/nic/loopback.h"

#include <utility>

namespace rocemu::fuzz {

namespace {

constexpr unsigned kBurst = 32;
constexpr uint32_t kMtu1024 = 3;  // IBV_MTU_1024
constexpr uint8_t kIpv4GidIndex = 1;

}  // namespace

bool Loopback::resolve(const wire::Gid& gid, MacAddress& mac) noexcept {
  for (const device::GidEntry& entry : port_.gids) {
    if (entry.gid != gid) continue;
    mac = port_.mac;
    return true;
  }
  return false;
}

bool Loopback::allocate(transport::FrameBuffer& buffer) noexcept {
  buffer.data = new std::byte[transport::kMaxFrameBytes];
  return true;
}

void Loopback::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  frames_.emplace_back(buffer.data, buffer.data + length_bytes);
  discard(buffer);
}

void Loopback::discard(const transport::FrameBuffer& buffer) noexcept { delete[] buffer.data; }

void Loopback::turn(device::Hca& hca, TimeNs now_ns) {
  transport::Endpoint& endpoint = hca.endpoint();
  const auto burst = std::exchange(frames_, {});
  const std::vector<std::span<const std::byte>> frames(burst.begin(), burst.end());
  endpoint.on_frames(now_ns, frames);
  if (endpoint.next_deadline() <= now_ns) endpoint.on_timeout(now_ns);
  endpoint.transmit(now_ns, *this, kBurst);
  hca.publish_completions(now_ns);
}

device::HcaConfig small_device() {
  device::HcaConfig config = device::default_config(0);
  device::DeviceLimits& limits = config.limits;
  limits.max_qp = 6;
  limits.max_qp_wr = 64;
  limits.max_sge = 8;
  limits.max_cq = 5;
  limits.max_cqe = 128;
  limits.max_mr = 6;
  limits.max_pd = 5;
  limits.max_contexts = 3;
  limits.max_channels = 4;
  limits.max_qp_rd_atom = 4;
  limits.max_inline_data = 256;
  limits.max_msg_size = 1u << 20;
  limits.max_mw = 4;
  limits.max_ah = 4;
  limits.max_srq = 3;
  limits.max_srq_wr = 64;
  limits.max_srq_sge = 4;
  limits.max_xrcd = 3;
  limits.max_mcast_grp = 3;
  limits.max_mcast_qp_attach = 2;
  limits.max_total_mcast_qp_attach = 4;
  limits.max_dm_size = 8192;
  return config;
}

device::QpAttr attributes_for(const device::HcaConfig& config, uint32_t peer_qpn) {
  device::QpAttr attr;
  attr.port_num = attr.ah.port_num = 1;
  attr.qp_access_flags = 15;
  attr.path_mtu = kMtu1024;
  attr.ah.is_global = true;
  attr.ah.sgid_index = kIpv4GidIndex;
  attr.ah.dgid = config.port.gids[kIpv4GidIndex].gid;
  attr.dest_qp_num = peer_qpn;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 2;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 3;
  return attr;
}

}  // namespace rocemu::fuzz
