#include "dpdk_io/ethdev/pci_device.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace rocemu::dpdk_io {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// What the kernel would show of one PCI device.
class FakeRoot {
 public:
  FakeRoot() {
    char name[] = "/tmp/rocemu-pci-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(device());
    write(device() / "class", "0x020000");
  }
  ~FakeRoot() { fs::remove_all(root_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  static constexpr char kAddress[] = "0000:01:00.0";
  fs::path device() const { return root_ / "sys/bus/pci/devices" / kAddress; }
  void write(const fs::path& file, const char* text) { std::ofstream(file) << text << "\n"; }
  void link(const char* name, const char* target) {
    fs::remove(device() / name);
    fs::create_symlink(fs::path("../../somewhere") / target, device() / name);
  }
  std::string why() const { return why_not_usable(kAddress, root_); }
  bool reads_physical_memory() const { return dpdk_io::reads_physical_memory(kAddress, root_); }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

}  // namespace

TEST_CASE("a PCI address is whole, with or without its domain") {
  CHECK(whole_pci_address("01:00.0") == "0000:01:00.0");
  CHECK(whole_pci_address("0001:AF:1f.7") == "0001:af:1f.7");
  for (const char* text : {"", "1:0.0", "01:00", "0000:01:00.0 ", "0000-01-00.0", "zzzz:01:00.0"})
    CHECK(whole_pci_address(text).empty());
}

TEST_CASE("a NIC that DPDK cannot have is told of with what to do") {
  FakeRoot fake;
  CHECK_THAT(why_not_usable("0000:02:00.0", fake.root()), Contains("no such PCI device"));
  CHECK_THAT(fake.why(), Contains("no driver") && Contains("vfio-pci"));
  fake.link("driver", "e1000e");
  CHECK_THAT(fake.why(),
             Contains("e1000e has this NIC") && Contains("driverctl set-override 0000:01:00.0"));
  fake.link("driver", "mlx5_core");
  CHECK(fake.why().empty());
  fake.link("driver", "vfio-pci");
  CHECK_THAT(fake.why(), Contains("IOMMU"));
  fake.link("iommu_group", "7");
  CHECK_THAT(fake.why(), Contains("can't open") && Contains("dev/vfio/7"));
  fs::create_directories(fake.root() / "dev/vfio");
  fake.write(fake.root() / "dev/vfio/7", "");
  CHECK(fake.why().empty());
  CHECK(!fake.reads_physical_memory());
  fake.write(fake.device() / "class", "0x010000");
  CHECK_THAT(fake.why(), Contains("no network controller"));
}

TEST_CASE("a NIC without an IOMMU needs hugepages") {
  FakeRoot fake;
  const fs::path pages = fake.root() / "sys/kernel/mm/hugepages/hugepages-2048kB";
  fs::create_directories(pages);
  fake.write(pages / "free_hugepages", "0");
  fake.link("driver", "uio_pci_generic");
  CHECK(fake.reads_physical_memory());
  CHECK_THAT(fake.why(), Contains("hugepages") && Contains("vm.nr_hugepages"));
  fake.write(pages / "free_hugepages", "160");
  CHECK(fake.why().empty());

  fake.link("driver", "vfio-pci");
  CHECK(!fake.reads_physical_memory());
  fs::create_directories(fake.root() / "somewhere/7");
  fs::create_directory_symlink(fake.root() / "somewhere/7", fake.device() / "iommu_group");
  fake.write(fake.root() / "somewhere/7/name", "vfio-noiommu");
  CHECK(fake.reads_physical_memory());
  CHECK_THAT(fake.why(), Contains("can't open") && Contains("dev/vfio/noiommu-7"));
}

}  // namespace rocemu::dpdk_io
