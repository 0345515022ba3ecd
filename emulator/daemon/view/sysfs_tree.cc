#include "emulator/daemon/view/sysfs_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/attachment/port_description.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

namespace fs = std::filesystem;
using device::HcaConfig;

constexpr unsigned kPciDomain = 0xca3e;
constexpr unsigned kPciClassInfiniband = 0x020700;
constexpr unsigned kRdmaCmAbiVersion = 4;  // RDMA_USER_CM_ABI_VERSION
constexpr std::string_view kUp = "../../";

// Directory is one directory that sysfs attributes are written into, a line each.
class Directory {
 public:
  explicit Directory(fs::path path) : path_(std::move(path)) { fs::create_directories(path_); }

  Directory sub(const fs::path& name) const { return Directory(path_ / name); }

  // Replaces the bytes that are there in one go and does not cut the file, so that a reader never
  // finds it empty.
  template <class Value>
  void file(const fs::path& name, const Value& value) const {
    const std::string line = fmt::format("{}\n", value);
    const UniqueFd fd(::open((path_ / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!fd || ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
        ::ftruncate(fd.get(), static_cast<off_t>(line.size())) != 0)
      throw std::runtime_error("can't write " + (path_ / name).string() + ": " +
                               std::strerror(errno));
  }

  void link(const fs::path& name, const fs::path& target) const {
    std::error_code error;  // two ports may be on one interface
    fs::create_directory_symlink(target, path_ / name, error);
    if (error && error != std::errc::file_exists)
      throw fs::filesystem_error("can't make a link", target, path_ / name, error);
  }

 private:
  fs::path path_;
};

std::string pci_address(const HcaConfig& device) {
  return fmt::format("{:04x}:00:{:02x}.0", kPciDomain, device.index);
}

fs::path pci_path(const HcaConfig& device) {
  return fs::path("devices") / fmt::format("pci{:04x}:00", kPciDomain) / pci_address(device);
}

std::string uverbs_name(const HcaConfig& device) { return fmt::format("uverbs{}", device.index); }

std::string cpu_list(const cpu_set_t& cpus) {
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    if (!list.empty()) list += ',';
    list += cpu == last ? std::to_string(cpu) : fmt::format("{}-{}", cpu, last);
    cpu = last;
  }
  return list;
}

// Writes groups of 32 bits in hexadecimal, the highest first, as the kernel prints cpumasks.
std::string cpu_mask(const cpu_set_t& cpus) {
  std::string mask;
  for (int group = CPU_SETSIZE / 32 - 1; group >= 0; --group) {
    uint32_t bits = 0;
    for (int bit = 0; bit < 32; ++bit)
      if (CPU_ISSET(group * 32 + bit, &cpus)) bits |= 1u << bit;
    if (mask.empty() && bits == 0 && group != 0) continue;
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", bits);
  }
  return mask;
}

void write_pci_device(const Directory& pci, const HcaConfig& device) {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
  pci.file("vendor", fmt::format("0x{:04x}", device::kVendorId));
  pci.file("device", fmt::format("0x{:04x}", device::kVendorPartId));
  pci.file("subsystem_vendor", fmt::format("0x{:04x}", device::kVendorId));
  pci.file("subsystem_device", fmt::format("0x{:04x}", device::kVendorPartId));
  pci.file("class", fmt::format("0x{:06x}", kPciClassInfiniband));
  pci.file("revision", "0x00");
  pci.file("numa_node", -1);
  pci.file("local_cpus", cpu_mask(cpus));
  pci.file("local_cpulist", cpu_list(cpus));
  pci.file("modalias", fmt::format("pci:v{0:08X}d{1:08X}sv{0:08X}sd{1:08X}bc02sc07i00",
                                   device::kVendorId, device::kVendorPartId));
  pci.file("uevent", fmt::format("DRIVER=rocemu\nPCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\n"
                                 "PCI_SLOT_NAME={}",
                                 kPciClassInfiniband, device::kVendorId, device::kVendorPartId,
                                 pci_address(device)));
}

void write_netdev(const Directory& netdev, const HcaConfig& device) {
  netdev.file("address", to_text(device.port.mac));
  netdev.file("mtu", device.port.mtu_bytes);
  netdev.file("type", 1);  // ARPHRD_ETHER
  netdev.file("operstate", device.port.active ? "up" : "down");
  netdev.file("carrier", device.port.active ? 1 : 0);
  netdev.file("speed", 100'000);
  netdev.file("dev_id", "0x0");
  netdev.file("dev_port", 0);
  netdev.link("device", "../../../" + pci_address(device));
}

void write_gids(const Directory& port, const HcaConfig& device) {
  const Directory gids = port.sub("gids");
  const Directory types = port.sub("gid_attrs/types");
  const Directory netdevs = port.sub("gid_attrs/ndevs");
  // libibverbs takes the name of an interface that this machine does not have for an error.
  const bool netdev_exists = ::if_nametoindex(device.port.netdev_name.c_str()) != 0;
  for (size_t i = 0; i < gid_table_length(device.port); ++i) {
    const std::string index = std::to_string(i);
    const bool used = i < device.port.gids.size();
    gids.file(index, to_text(used ? device.port.gids[i].gid : wire::Gid{}));
    types.file(index, "RoCE v2");
    if (used && netdev_exists) netdevs.file(index, device.port.netdev_name);
  }
}

void write_port_state(const Directory& port, const HcaConfig& device) {
  port.file("state", device.port.active ? "4: ACTIVE" : "1: DOWN");
  port.file("phys_state", device.port.active ? "5: LinkUp" : "3: Disabled");
  write_gids(port, device);
}

void write_port(const Directory& port, const HcaConfig& device) {
  port.file("link_layer", "Ethernet");
  port.file("rate", "100 Gb/sec (4X EDR)");
  port.file("lid", "0x0");
  port.file("lid_mask_count", 0);
  port.file("sm_lid", "0x0");
  port.file("sm_sl", 0);
  port.file("cap_mask", "0x04010000");
  port.sub("pkeys").file("0", fmt::format("0x{:04x}", wire::kDefaultPkey));
  write_port_state(port, device);
}

void write_ib_device(const Directory& ib, const HcaConfig& device) {
  ib.file("node_type", "1: CA");
  ib.file("node_guid", guid_text(device.node_guid));
  ib.file("sys_image_guid", guid_text(device.node_guid));
  ib.file("node_desc", device.name);
  ib.file("fw_ver", ROCEMU_VERSION);
  ib.file("hca_type", "rocemu");
  ib.file("hw_rev", "0x0");
  ib.file("board_id", "ROCEMU0000001");
  ib.file(ROCEMU_SYSFS_MARKER, device.index);
  ib.link("device", "../../../" + pci_address(device));
  write_port(ib.sub("ports/1"), device);
}

void write_uverbs(const Directory& uverbs, const HcaConfig& device) {
  uverbs.file("ibdev", device.name);
  uverbs.file("dev",
              fmt::format("{}:{}", device::kUverbsMajor, device::kUverbsFirstMinor + device.index));
  uverbs.file("abi_version", 1);
  uverbs.link("device", "../../../" + pci_address(device));
}

void write_device(const Directory& root, const HcaConfig& device) {
  const fs::path from_class = kUp / pci_path(device);
  const Directory pci = root.sub(pci_path(device));
  write_pci_device(pci, device);
  write_netdev(pci.sub("net").sub(device.port.netdev_name), device);
  write_ib_device(pci.sub("infiniband").sub(device.name), device);
  write_uverbs(pci.sub("infiniband_verbs").sub(uverbs_name(device)), device);

  root.sub("class/net").link(device.port.netdev_name, from_class / "net" / device.port.netdev_name);
  root.sub("class/infiniband").link(device.name, from_class / "infiniband" / device.name);
  root.sub("class/infiniband_verbs")
      .link(uverbs_name(device), from_class / "infiniband_verbs" / uverbs_name(device));
}

// `shown` is empty, or has the same names.
void write_changed(const Directory& directory, NamedCounters& shown, NamedCounters now) {
  for (size_t i = 0; i < now.size(); ++i)
    if (shown.empty() || shown[i].second != now[i].second)
      directory.file(now[i].first, now[i].second);
  shown = std::move(now);
}

}  // namespace

SysfsTree::SysfsTree(fs::path root, const std::vector<HcaConfig>& devices)
    : root_(std::move(root)) {
  fs::remove_all(root_);
  const Directory top(root_);
  top.sub("class/infiniband_verbs").file("abi_version", 6);
  // librdmacm's device, as the kernel's rdma_ucm registers it (misc devices have major 10).
  const Directory rdma_cm = top.sub("class/misc/rdma_cm");
  rdma_cm.file("abi_version", kRdmaCmAbiVersion);
  rdma_cm.file("dev", "10:255");
  // Memory file systems list what was made last first, and libibverbs takes the devices in the
  // order of the directory: "the first device" is to be the first.
  for (auto device = devices.rbegin(); device != devices.rend(); ++device) {
    write_device(top, *device);
    write_counters(*device, {});
  }
}

SysfsTree::~SysfsTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void SysfsTree::write_port(const HcaConfig& device) const {
  const Directory pci(root_ / pci_path(device));
  write_netdev(pci.sub("net").sub(device.port.netdev_name), device);
  write_port_state(pci.sub("infiniband").sub(device.name).sub("ports/1"), device);
}

void SysfsTree::write_counters(const HcaConfig& device, const PortCounts& counts) {
  const fs::path port = root_ / pci_path(device) / "infiniband" / device.name / "ports/1";
  Shown& shown = shown_[device.index];
  write_changed(Directory(port / "counters"), shown.counters, port_counters(counts));
  write_changed(Directory(port / "hw_counters"), shown.hw_counters, hw_counters(counts.transport));
}

}  // namespace rocemu::daemon
