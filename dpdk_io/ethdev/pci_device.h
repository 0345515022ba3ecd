// Reads what the kernel says of a NIC on the PCI bus: enough to tell a user why DPDK cannot have
// it. DPDK itself says "no such device" for nearly everything.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rocemu::dpdk_io {

// DOMAIN:BUS:DEVICE.FUNCTION of what may lack the domain; empty: it is no PCI address.
std::string whole_pci_address(std::string_view text);

// Returns the reason why DPDK cannot use the NIC at this (whole) address, and what to do; empty:
// nothing is known to be in the way. Other roots than "/" are for tests.
std::string why_not_usable(const std::string& address, const std::filesystem::path& root = "/");

// True when no IOMMU stands between the NIC and memory (its driver is one of uio's, or vfio-pci in
// no-IOMMU mode): DPDK then has to know physical addresses, and so needs hugepages, and root.
bool reads_physical_memory(const std::string& address, const std::filesystem::path& root = "/");

}  // namespace rocemu::dpdk_io
