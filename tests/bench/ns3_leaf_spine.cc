// What ns-3 makes of the network and the load that scripts/bench.sh gives rocemu sim: a leaf-spine,
// flows at Poisson times with the sizes of a table, and a transport that is reliable (TCP, in
// segments of 1024 bytes). Counts the frames that hosts receive, and those on all cables.
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace ns3;

namespace {

constexpr uint16_t kPort = 5000;
uint64_t delivered = 0;
uint64_t hops = 0;

void OnHostReceived(Ptr<const Packet>) { ++delivered; }
void OnSent(Ptr<const Packet>) { ++hops; }

// "10kb 15%", as in emulator/experiment/sizes.
Ptr<EmpiricalRandomVariable> ReadSizes(const std::string& file, double& mean) {
  auto sizes = CreateObject<EmpiricalRandomVariable>();
  sizes->SetAttribute("Interpolate", BooleanValue(true));
  std::ifstream stream(file);
  std::string line;
  double last_size = 0, last_share = 0;
  while (std::getline(stream, line)) {
    double size = 0, share = 0;
    char unit[3] = "";
    if (std::sscanf(line.c_str(), "%lf%2[a-z] %lf%%", &size, unit, &share) != 3) continue;
    const std::string name = unit;
    size *= name == "mb" ? 1e6 : name == "kb" ? 1e3 : 1;
    mean += (size + last_size) / 2 * (share - last_share) / 100;
    last_size = size;
    last_share = share;
    sizes->CDF(size, share / 100);
  }
  return sizes;
}

struct Fabric {
  NodeContainer hosts, leaves, spines;
  std::vector<Ipv4Address> addresses;  // of hosts
};

// Two ends of a new cable; the interfaces' numbers.
std::pair<uint32_t, uint32_t> Connect(PointToPointHelper& cable, Ptr<Node> a, Ptr<Node> b,
                                      Ipv4AddressHelper& addresses) {
  const NetDeviceContainer ends = cable.Install(a, b);
  const Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
  addresses.NewNetwork();
  for (uint32_t i = 0; i < 2; ++i)
    ends.Get(i)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnSent));
  return {interfaces.Get(0).second, interfaces.Get(1).second};
}

Ptr<Ipv4StaticRouting> RoutesOf(Ptr<Node> node) {
  Ipv4StaticRoutingHelper helper;
  return helper.GetStaticRouting(node->GetObject<Ipv4>());
}

// Each destination has one spine, so that routes are tables, and flows are not reordered.
Fabric Build(uint32_t leaf_count, uint32_t spine_count, uint32_t hosts_per_leaf) {
  Fabric fabric;
  fabric.hosts.Create(leaf_count * hosts_per_leaf);
  fabric.leaves.Create(leaf_count);
  fabric.spines.Create(spine_count);
  InternetStackHelper stack;
  Ipv4StaticRoutingHelper routing;
  stack.SetRoutingHelper(routing);
  stack.InstallAll();
  PointToPointHelper cable;
  cable.SetDeviceAttribute("DataRate", StringValue("100Gbps"));
  cable.SetChannelAttribute("Delay", StringValue("1us"));
  cable.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("16MB"));
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  std::vector<uint32_t> down(fabric.hosts.GetN());  // the leaf's interface to a host
  for (uint32_t i = 0; i < fabric.hosts.GetN(); ++i) {
    const Ptr<Node> host = fabric.hosts.Get(i);
    const auto [own, leafs] =
        Connect(cable, host, fabric.leaves.Get(i / hosts_per_leaf), addresses);
    down[i] = leafs;
    RoutesOf(host)->SetDefaultRoute(Ipv4Address("10.0.0.1"), own);
    host->GetDevice(own)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&OnHostReceived));
    fabric.addresses.push_back(host->GetObject<Ipv4>()->GetAddress(own, 0).GetLocal());
  }
  for (uint32_t leaf = 0; leaf < leaf_count; ++leaf) {
    for (uint32_t spine = 0; spine < spine_count; ++spine) {
      const auto [up, from_spine] =
          Connect(cable, fabric.leaves.Get(leaf), fabric.spines.Get(spine), addresses);
      for (uint32_t i = 0; i < fabric.hosts.GetN(); ++i) {
        if (i / hosts_per_leaf == leaf)
          RoutesOf(fabric.spines.Get(spine))->AddHostRouteTo(fabric.addresses[i], from_spine);
        else if (i % spine_count == spine)
          RoutesOf(fabric.leaves.Get(leaf))->AddHostRouteTo(fabric.addresses[i], up);
      }
    }
  }
  for (uint32_t i = 0; i < fabric.hosts.GetN(); ++i)
    RoutesOf(fabric.leaves.Get(i / hosts_per_leaf))->AddHostRouteTo(fabric.addresses[i], down[i]);
  return fabric;
}

}  // namespace

int main(int argc, char** argv) {
  double load = 0.5, duration = 0.001;
  std::string sizes_file;
  CommandLine options;
  options.AddValue("load", "of the hosts' links", load);
  options.AddValue("duration", "seconds of virtual time", duration);
  options.AddValue("sizes", "table of flow sizes", sizes_file);
  options.Parse(argc, argv);
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1024));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4'000'000));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4'000'000));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(256));

  double mean = 0;
  const auto sizes = ReadSizes(sizes_file, mean);
  const Fabric fabric = Build(8, 8, 16);
  PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
  sinks.Install(fabric.hosts).Start(Seconds(0));
  auto gaps = CreateObject<ExponentialRandomVariable>();
  gaps->SetAttribute("Mean", DoubleValue(mean * 8 / (load * 128 * 100e9)));
  auto pick = CreateObject<UniformRandomVariable>();
  for (double at = gaps->GetValue(); at < duration; at += gaps->GetValue()) {
    const uint32_t from = pick->GetInteger(0, 127);
    const uint32_t to = (from + 1 + pick->GetInteger(0, 126)) % 128;
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(fabric.addresses[to], kPort));
    sender.SetAttribute("MaxBytes", UintegerValue(static_cast<uint64_t>(sizes->GetValue()) + 1));
    sender.Install(fabric.hosts.Get(from)).Start(Seconds(at));
  }
  const std::clock_t started = std::clock();
  Simulator::Stop(Seconds(duration));
  Simulator::Run();
  const double took = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
  std::printf("%llu packets %llu hops %.3f s\n", static_cast<unsigned long long>(delivered),
              static_cast<unsigned long long>(hops), took);
  Simulator::Destroy();
}
