#include "emulator/daemon/attachment/attachments.h"

#include <algorithm>
#include <utility>

#include "emulator/daemon/attachment/kernel_attachment.h"

namespace rocemu::daemon {

Attachment& Attachments::attach(const dpdk_io::PortSpec& spec, device::HcaConfig& device) {
  std::unique_ptr<Attachment> attachment = open(spec, device);
  device.port.gids.clear();
  device.port = attachment->describe(device.port);
  device.node_guid = device::guid_from_mac(device.port.mac);
  attachment->follow(device.port);
  if (attachment->groups() != nullptr)
    device.limits.max_mcast_grp =
        std::min<uint32_t>(device.limits.max_mcast_grp, dpdk_io::MulticastGroups::kMaxGroups);
  path_finders_[device.index] = std::make_unique<PathFinder>(io_, *attachment, device.port);
  attachments_[device.index] = std::move(attachment);
  return *attachments_[device.index];
}

std::unique_ptr<Attachment> Attachments::open(const dpdk_io::PortSpec& spec,
                                              const device::HcaConfig& device) {
  if (spec.kind == dpdk_io::PortKind::interface || spec.kind == dpdk_io::PortKind::udp) {
    if (network_ == nullptr) network_ = std::make_unique<dpdk_io::KernelNetwork>();
    return std::make_unique<KernelAttachment>(spec, device.index, *network_, pool_);
  }
  auto attachment = std::make_unique<EthdevAttachment>(spec, device, io_, engine_, pool_);
  ethdevs_.push_back(attachment.get());
  return attachment;
}

void Attachments::watch(const std::function<void()>& changed) {
  if (network_ != nullptr) network_watch_ = std::make_unique<NetworkWatch>(io_, *network_, changed);
  if (!ethdevs_.empty()) link_watch_ = std::make_unique<LinkWatch>(io_, ethdevs_, changed);
}

}  // namespace rocemu::daemon
