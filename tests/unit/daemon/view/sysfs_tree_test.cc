#include "emulator/daemon/view/sysfs_tree.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("counters change in place, each for itself") {
  const Tree tree;
  const fs::path port = "class/infiniband/rocemu0/ports/1";
  CHECK(tree.line(port / "counters/port_xmit_data") == "0");
  PortCounts counts;
  counts.transport[transport::TraceEvent::retransmitted] = 12;
  counts.port.tx_bytes = 4000;
  counts.link_downs = 1;
  const fs::path same = tree.root / port / "hw_counters/duplicate_request";
  const auto before = fs::file_size(same);
  fs::resize_file(same, 0);  // what has not changed is not written
  tree.tree->write_counters(tree.devices[0], counts);
  CHECK(tree.line(port / "counters/port_xmit_data") == "1000");
  CHECK(tree.line(port / "counters/link_downed") == "1");
  CHECK(tree.line(port / "hw_counters/retransmitted_pkts") == "12");
  CHECK(before == 2);
  CHECK(fs::file_size(same) == 0);
  CHECK(tree.line("class/infiniband/rocemu1/ports/1/counters/port_xmit_data") == "0");
}

TEST_CASE("exporters find regular files of all names that they read, in the kernel's format") {
  const Tree tree;
  const fs::path port = "class/infiniband/rocemu0/ports/1";
  // Those of prometheus/procfs, class_infiniband.go.
  const std::vector<std::string> counters = {"VL15_dropped",
                                             "excessive_buffer_overrun_errors",
                                             "link_downed",
                                             "link_error_recovery",
                                             "local_link_integrity_errors",
                                             "multicast_rcv_packets",
                                             "multicast_xmit_packets",
                                             "port_rcv_constraint_errors",
                                             "port_rcv_data",
                                             "port_rcv_discards",
                                             "port_rcv_errors",
                                             "port_rcv_packets",
                                             "port_rcv_remote_physical_errors",
                                             "port_rcv_switch_relay_errors",
                                             "port_xmit_constraint_errors",
                                             "port_xmit_data",
                                             "port_xmit_discards",
                                             "port_xmit_packets",
                                             "port_xmit_wait",
                                             "symbol_error",
                                             "unicast_rcv_packets",
                                             "unicast_xmit_packets"};
  const std::vector<std::string> hw_counters = {"duplicate_request",
                                                "implied_nak_seq_err",
                                                "lifespan",
                                                "local_ack_timeout_err",
                                                "np_cnp_sent",
                                                "np_ecn_marked_roce_packets",
                                                "out_of_buffer",
                                                "out_of_sequence",
                                                "packet_seq_err",
                                                "req_cqe_error",
                                                "req_cqe_flush_error",
                                                "req_remote_access_errors",
                                                "req_remote_invalid_request",
                                                "resp_cqe_error",
                                                "resp_cqe_flush_error",
                                                "resp_local_length_error",
                                                "resp_remote_access_errors",
                                                "rnr_nak_retry_err",
                                                "roce_adp_retrans",
                                                "roce_adp_retrans_to",
                                                "roce_slow_restart",
                                                "roce_slow_restart_cnps",
                                                "roce_slow_restart_trans",
                                                "rp_cnp_handled",
                                                "rp_cnp_ignored",
                                                "rx_atomic_requests",
                                                "rx_dct_connect",
                                                "rx_icrc_encapsulated",
                                                "rx_read_requests",
                                                "rx_write_requests",
                                                "req_transport_retries_exceeded",
                                                "req_rnr_retries_exceeded"};
  for (const std::string& name : counters) {
    INFO(name);
    CHECK(fs::is_regular_file(fs::symlink_status(tree.root / port / "counters" / name)));
    CHECK(tree.line(port / "counters" / name) == "0");
  }
  for (const std::string& name : hw_counters) {
    INFO(name);
    CHECK(fs::is_regular_file(fs::symlink_status(tree.root / port / "hw_counters" / name)));
    CHECK(tree.line(port / "hw_counters" / name) == (name == "lifespan" ? "1000" : "0"));
  }
  CHECK(tree.line(port / "rate") == "100 Gb/sec (4X EDR)");
  CHECK(tree.line(port / "phys_state") == "5: LinkUp");
}

TEST_CASE("each hw_counter tells of its event") {
  using transport::TraceEvent;
  const std::vector<std::pair<std::string, TraceEvent>> names = {
      {"req_cqe_error", TraceEvent::request_failed},
      {"req_cqe_flush_error", TraceEvent::request_flushed},
      {"req_remote_access_errors", TraceEvent::remote_access_error},
      {"req_remote_invalid_request", TraceEvent::remote_invalid_request},
      {"req_transport_retries_exceeded", TraceEvent::retries_exceeded},
      {"req_rnr_retries_exceeded", TraceEvent::rnr_retries_exceeded},
      {"resp_cqe_error", TraceEvent::receive_failed},
      {"resp_cqe_flush_error", TraceEvent::receive_flushed},
      {"resp_local_length_error", TraceEvent::receive_length_error},
      {"resp_remote_access_errors", TraceEvent::remote_access_refused},
      {"rx_write_requests", TraceEvent::write_executed},
      {"rx_read_requests", TraceEvent::read_executed},
      {"rx_atomic_requests", TraceEvent::atomic_executed},
      {"out_of_buffer", TraceEvent::rnr_nak_sent},
      {"out_of_buffer", TraceEvent::no_receive},
      {"roce_adp_retrans_to", TraceEvent::early_retransmission}};
  for (const auto& [name, event] : names) {
    INFO(name);
    transport::Counters counters;
    counters[event] = 5;
    const NamedCounters shown = hw_counters(counters);
    const auto found = std::ranges::find(shown, name, &NamedCounters::value_type::first);
    REQUIRE(found != shown.end());
    CHECK(found->second == 5);
  }
}

TEST_CASE("a port's packets are unicast or multicast") {
  PortCounts counts;
  counts.port.rx_frames = 10;
  counts.port.tx_frames = 3;
  counts.transport[transport::TraceEvent::multicast_received] = 4;
  counts.transport[transport::TraceEvent::multicast_sent] = 5;  // some have not left yet
  std::map<std::string_view, uint64_t> shown;
  for (const auto& [name, value] : port_counters(counts)) shown[name] = value;
  CHECK(shown["unicast_rcv_packets"] == 6);
  CHECK(shown["multicast_rcv_packets"] == 4);
  CHECK(shown["unicast_xmit_packets"] == 0);
  CHECK(shown["multicast_xmit_packets"] == 5);
}

TEST_CASE("a tree that is there already goes, and so does the new one at the end") {
  Tree tree;
  CHECK_FALSE(fs::exists(tree.root / "left"));
  tree.tree.reset();
  CHECK_FALSE(fs::exists(tree.root));
}

}  // namespace rocemu::daemon
