#include "emulator/device/attributes/path.h"

#include <cerrno>

namespace rocemu::device {

namespace {
constexpr uint8_t kDefaultHopLimit = 64;
// The header's field has 20 bits. Programs set all 32 (UCX does), and NICs take the lower ones.
constexpr uint32_t kFlowLabelMask = 0xfffff;
}  // namespace

uint16_t udp_source_port(uint32_t flow_label, wire::Qpn local, wire::Qpn remote) {
  if (flow_label == 0) {
    uint64_t v = uint64_t{local.value} * remote.value;
    v ^= v >> 20;
    v ^= v >> 40;
    flow_label = static_cast<uint32_t>(v & kFlowLabelMask);
  }
  return static_cast<uint16_t>(0xc000 | ((flow_label & 0x3fff) ^ (flow_label >> 14 & 0x3f)));
}

bool names_a_path(const PortConfig& port, const AhAttr& ah) {
  if (!ah.is_global || ah.sgid_index >= port.gids.size()) return false;
  const wire::Gid& local = port.gids[ah.sgid_index].gid;
  return local != wire::Gid{} && local.is_ipv4_mapped() == ah.dgid.is_ipv4_mapped();
}

Result<transport::Path> make_path(const PortConfig& port, const AhAttr& ah, wire::Qpn local_qpn,
                                  wire::Qpn remote_qpn, AddressResolver& resolver) {
  if (!names_a_path(port, ah)) return tl::unexpected(EINVAL);
  const wire::Gid& local = port.gids[ah.sgid_index].gid;
  const uint32_t flow_label = ah.flow_label & kFlowLabelMask;

  wire::Ethernet ethernet;
  ethernet.source = port.mac;
  if (is_multicast(ah.dgid)) {
    ethernet.destination = group_mac(ah.dgid);
  } else if (!resolver.resolve(ah.dgid, ethernet.destination)) {
    return tl::unexpected(EHOSTUNREACH);
  }
  wire::Ip ip;
  ip.source = local;
  ip.destination = ah.dgid;
  ip.traffic_class = ah.traffic_class;
  ip.flow_label = flow_label;
  ip.hop_limit = ah.hop_limit != 0 ? ah.hop_limit : kDefaultHopLimit;
  wire::Udp udp;
  udp.source_port = port.udp_source_port != 0 ? port.udp_source_port
                                              : udp_source_port(flow_label, local_qpn, remote_qpn);
  return transport::Path{wire::HeaderTemplate(ethernet, ip, udp), local, ah.dgid};
}

}  // namespace rocemu::device
