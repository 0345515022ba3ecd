#include "dpdk_io/ethdev/pci_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace rocemu::dpdk_io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDomain = "0000:";
constexpr std::string_view kForm = "dddd:bb:dd.f";
// The kernel's drivers through which DPDK reaches a NIC; those of NVIDIA's NICs stay what they are.
constexpr std::array<std::string_view, 5> kUsableDrivers = {"vfio-pci", "uio_pci_generic",
                                                            "igb_uio", "mlx5_core", "mlx4_core"};
constexpr std::array<std::string_view, 2> kUioDrivers = {"uio_pci_generic", "igb_uio"};
constexpr std::string_view kNetworkClass = "0x02";
constexpr std::string_view kNoIommu = "vfio-noiommu";  // the name of such a NIC's group

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The last part of what a link points to; empty when there is no link.
std::string target_name(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().string();
}

bool has_no_iommu(const fs::path& device) {
  return first_line(device / "iommu_group/name") == kNoIommu;
}

bool any_hugepage_is_free(const fs::path& root) {
  std::error_code error;
  for (const fs::directory_entry& size :
       fs::directory_iterator(root / "sys/kernel/mm/hugepages", error)) {
    const std::string free = first_line(size.path() / "free_hugepages");
    if (!free.empty() && free != "0") return true;
  }
  return false;
}

std::string bind_it(const std::string& address) {
  return "; bind it to vfio-pci, as root: modprobe vfio-pci; driverctl set-override " + address +
         " vfio-pci (or dpdk-devbind.py --bind=vfio-pci " + address +
         "); what used it before loses it";
}

}  // namespace

std::string whole_pci_address(std::string_view text) {
  std::string whole(text);
  if (std::ranges::count(text, ':') == 1) whole.insert(0, kDomain);
  if (whole.size() != kForm.size()) return {};
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool punctuation = kForm[i] == ':' || kForm[i] == '.';
    if (punctuation ? whole[i] != kForm[i]
                    : std::isxdigit(static_cast<unsigned char>(whole[i])) == 0)
      return {};
    whole[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(whole[i])));
  }
  return whole;
}

std::string why_not_usable(const std::string& address, const fs::path& root) {
  const fs::path devices = root / "sys/bus/pci/devices";
  const fs::path device = devices / address;
  std::error_code error;
  if (!fs::exists(devices, error)) return "this machine has no PCI bus";
  if (!fs::exists(device, error))
    return "there is no such PCI device; lspci -D | grep -i ethernet lists those there are";
  const std::string device_class = first_line(device / "class");
  if (!device_class.starts_with(kNetworkClass))
    return "this PCI device is no network controller but of class " + device_class;
  const std::string driver = target_name(device / "driver");
  if (driver.empty()) return "no driver of the kernel has this NIC" + bind_it(address);
  if (std::ranges::find(kUsableDrivers, driver) == kUsableDrivers.end())
    return "the kernel's driver " + driver + " has this NIC" + bind_it(address) +
           ". Or leave it to the kernel and use its interface: --port DEVICE=IFNAME";
  if (reads_physical_memory(address, root) && !any_hugepage_is_free(root))
    return "no IOMMU translates for this NIC, so that DPDK needs hugepages, of which none is free: "
           "as root, sysctl vm.nr_hugepages=160";
  if (driver != "vfio-pci") return {};
  const std::string group = target_name(device / "iommu_group");
  if (group.empty())
    return "this NIC is in no IOMMU group; switch the IOMMU on in the firmware and in the kernel's "
           "command line (intel_iommu=on or amd_iommu=on), or, where there is none, bind the NIC "
           "to "
           "uio_pci_generic";
  const fs::path file = root / "dev/vfio" / (has_no_iommu(device) ? "noiommu-" + group : group);
  if (::access(file.c_str(), R_OK | W_OK) != 0)
    return "can't open " + file.string() + ": " + std::strerror(errno) +
           "; run as root, or give it to your user: chown USER " + file.string();
  return {};
}

bool reads_physical_memory(const std::string& address, const fs::path& root) {
  const fs::path device = root / "sys/bus/pci/devices" / address;
  return std::ranges::find(kUioDrivers, target_name(device / "driver")) != kUioDrivers.end() ||
         has_no_iommu(device);
}

}  // namespace rocemu::dpdk_io
