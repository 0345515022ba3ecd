#include <string>

#include "emulator/device/attributes/device_config.h"

namespace rocemu::device {

uint64_t guid_from_mac(const MacAddress& mac) {
  const IpAddress address = link_local_address(mac);
  uint64_t guid = 0;
  for (size_t i = 8; i < 16; ++i) guid = guid << 8 | address.bytes[i];
  return guid;
}

HcaConfig default_config(uint32_t index) {
  const auto high = static_cast<uint8_t>((index + 1) >> 8);
  const auto low = static_cast<uint8_t>(index + 1);
  HcaConfig config;
  config.index = index;
  config.name = "rocemu" + std::to_string(index);
  config.port.netdev_name = "roce" + std::to_string(index);
  // Locally administered; 52:4f is "RO".
  config.port.mac = {0x02, 0x52, 0x4f, 0x43, high, low};
  const wire::Gid local = wire::Gid{link_local_address(config.port.mac)};
  config.node_guid = guid_from_mac(config.port.mac);

  wire::Gid ipv4;  // 10.77.0.(N+1)
  ipv4.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, high, low};
  wire::Gid ula;  // fd52:4f43:4500::(N+1)
  ula.bytes = {0xfd, 0x52, 0x4f, 0x43, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low};
  config.port.gids = {{local, 64}, {ipv4, 96 + 16}, {ula, 64}};
  return config;
}

}  // namespace rocemu::device
