#include "emulator/daemon/view/sysfs_tree.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

namespace rocemu::daemon {
namespace {

namespace fs = std::filesystem;

struct Tree {
  Tree() : root("/tmp/rocemud-sysfs-" + std::to_string(::getpid())) {
    fs::create_directories(root / "left/over");
    tree = std::make_unique<SysfsTree>(root, devices);
  }
  ~Tree() { fs::remove_all(root); }
  std::string line(const fs::path& path) const {
    std::ifstream in(root / path);
    REQUIRE(in);
    std::string text;
    std::getline(in, text);
    return text;
  }

  std::vector<device::HcaConfig> devices{device::default_config(0), device::default_config(1)};
  fs::path root;
  std::unique_ptr<SysfsTree> tree;
};

}  // namespace

TEST_CASE("libibverbs finds what it looks for") {
  const Tree tree;
  CHECK(tree.line("class/infiniband_verbs/abi_version") == "6");
  CHECK(tree.line("class/infiniband_verbs/uverbs1/ibdev") == "rocemu1");
  CHECK(tree.line("class/infiniband_verbs/uverbs1/dev") == "231:193");
  CHECK(tree.line("class/infiniband_verbs/uverbs1/abi_version") == "1");
  const fs::path device = "class/infiniband/rocemu1";
  CHECK(tree.line(device / "node_type") == "1: CA");
  CHECK(tree.line(device / "node_guid") == "0052:4fff:fe43:0002");
  CHECK(tree.line(device / "fw_ver") == ROCEMU_VERSION);
  CHECK(tree.line(device / "rocemu") == "1");
  CHECK(tree.line(device / "ports/1/state") == "4: ACTIVE");
  CHECK(tree.line(device / "ports/1/link_layer") == "Ethernet");
  CHECK(tree.line(device / "ports/1/pkeys/0") == "0xffff");
  CHECK(tree.line(device / "ports/1/gids/0") == "fe80:0000:0000:0000:0052:4fff:fe43:0002");
  CHECK(tree.line(device / "ports/1/gids/1") == "0000:0000:0000:0000:0000:ffff:0a4d:0002");
  CHECK(tree.line(device / "ports/1/gid_attrs/types/2") == "RoCE v2");
  // Empty places are there, as with a kernel.
  CHECK(tree.line(device / "ports/1/gids/3") == "0000:0000:0000:0000:0000:0000:0000:0000");
  CHECK(fs::exists(tree.root / device / "ports/1/gids/63"));
  CHECK_FALSE(fs::exists(tree.root / device / "ports/1/gids/64"));
}

TEST_CASE("topology code finds a PCI device of its own for each") {
  const Tree tree;
  const fs::path first = fs::canonical(tree.root / "class/infiniband/rocemu0/device");
  const fs::path second = fs::canonical(tree.root / "class/infiniband_verbs/uverbs1/device");
  CHECK(first.filename() == "ca3e:00:00.0");
  CHECK(second.filename() == "ca3e:00:01.0");
  CHECK(fs::canonical(tree.root / "class/infiniband/rocemu0").parent_path().parent_path() == first);
  CHECK(tree.line("class/infiniband/rocemu0/device/vendor") == "0xca3e");
  CHECK(tree.line("class/infiniband/rocemu0/device/numa_node") == "-1");
  CHECK_FALSE(tree.line("class/infiniband/rocemu0/device/local_cpulist").empty());
  CHECK(fs::exists(tree.root / "class/infiniband/rocemu0/device/net/roce0/address"));
  CHECK(fs::canonical(tree.root / "class/net/roce1/device") == second);
}

TEST_CASE("an interface that this machine does not have is not named with a GID") {
  Tree tree;
  const fs::path netdevs = "class/infiniband/rocemu0/ports/1/gid_attrs/ndevs";
  CHECK_FALSE(fs::exists(tree.root / netdevs / "0"));
  tree.devices[0].port.netdev_name = "lo";
  tree.tree.reset();
  tree.tree = std::make_unique<SysfsTree>(tree.root, tree.devices);
  CHECK(tree.line(netdevs / "0") == "lo");
}

TEST_CASE("counters change in place") {
  const Tree tree;
  const fs::path port = "class/infiniband/rocemu0/ports/1";
  CHECK(tree.line(port / "counters/port_xmit_data") == "0");
  transport::Counters counters;
  counters[transport::TraceEvent::retransmitted] = 12;
  dpdk_io::PortStats stats;
  stats.tx_bytes = 4000;
  tree.tree->write_counters(tree.devices[0], counters, stats);
  CHECK(tree.line(port / "counters/port_xmit_data") == "0");  // no frame, no look at the rest
  stats.tx_frames = 1;
  tree.tree->write_counters(tree.devices[0], counters, stats);
  CHECK(tree.line(port / "counters/port_xmit_data") == "1000");
  CHECK(tree.line(port / "hw_counters/retransmitted_pkts") == "12");
  CHECK(tree.line("class/infiniband/rocemu1/ports/1/counters/port_xmit_data") == "0");
}

TEST_CASE("a tree that is there already goes, and so does the new one at the end") {
  Tree tree;
  CHECK_FALSE(fs::exists(tree.root / "left"));
  tree.tree.reset();
  CHECK_FALSE(fs::exists(tree.root));
}

}  // namespace rocemu::daemon
