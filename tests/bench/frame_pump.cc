// frame_pump: what DPDK's af_packet driver moves over an interface, with nothing of a NIC. That is
// what bandwidth over an interface is measured against.
//
//   frame_pump send INTERFACE SOURCE_IP DESTINATION_IP DESTINATION_MAC SECONDS
//   frame_pump receive INTERFACE SECONDS
//
// Frames are those of a long RDMA WRITE with a path MTU of 4096: UDP to port 4791, 4158 bytes, the
// payload untouched. The receiver prints "ready", then what came by bytes and time since the first
// frame, in GB/s.
#include <arpa/inet.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>

#include "dpdk_io/eal/eal.h"
#include "dpdk_io/kernel/udp_port_reservation.h"
#include "dpdk_io/port/frame_pool.h"

namespace {

using Clock = std::chrono::steady_clock;
using rocemu::UniqueFd;
using rocemu::dpdk_io::Eal;
using rocemu::dpdk_io::EalOptions;
using rocemu::dpdk_io::FramePool;
using rocemu::dpdk_io::reserve_udp_port;

constexpr uint16_t kUdpPort = 4791;
constexpr uint16_t kFrameBytes = 4158;
constexpr unsigned kBurst = 32;
constexpr unsigned kPoolFrames = 8192;
constexpr unsigned kRoomBytes = 4608;  // a frame and its head in the driver's rings
constexpr char kDriver[] = "net_af_packet0";

struct Headers {
  rte_ether_hdr ethernet;
  rte_ipv4_hdr ip;
  rte_udp_hdr udp;
};

Headers headers_of(const std::string& source, const std::string& destination,
                   const std::string& mac) {
  Headers headers{};
  if (::rte_ether_unformat_addr(mac.c_str(), &headers.ethernet.dst_addr) != 0 ||
      ::inet_pton(AF_INET, source.c_str(), &headers.ip.src_addr) != 1 ||
      ::inet_pton(AF_INET, destination.c_str(), &headers.ip.dst_addr) != 1)
    throw std::runtime_error("wrong address");
  headers.ethernet.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
  headers.ip.version_ihl = RTE_IPV4_VHL_DEF;
  headers.ip.total_length = rte_cpu_to_be_16(kFrameBytes - sizeof(rte_ether_hdr));
  headers.ip.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
  headers.ip.time_to_live = 64;
  headers.ip.next_proto_id = IPPROTO_UDP;
  headers.ip.hdr_checksum = rte_ipv4_cksum(&headers.ip);
  headers.udp.src_port = headers.udp.dst_port = rte_cpu_to_be_16(kUdpPort);
  headers.udp.dgram_len =
      rte_cpu_to_be_16(kFrameBytes - sizeof(rte_ether_hdr) - sizeof(rte_ipv4_hdr));
  return headers;
}

// The driver on an interface. The kernel throws away what it gets of the frames itself. Two rings
// of 512 frames fit into the 8 MB of memory that an ordinary user may lock.
class Driver {
 public:
  Driver(const std::string& interface, FramePool& pool)
      : reservation_(reserve_udp_port(interface, kUdpPort)) {
    const std::string arguments = "iface=" + interface + ",framesz=" + std::to_string(kRoomBytes) +
                                  ",blocksz=36864,framecnt=512,qpairs=1";
    const rte_eth_conf nothing_special{};
    if (::rte_vdev_init(kDriver, arguments.c_str()) != 0 ||
        ::rte_eth_dev_get_port_by_name(kDriver, &port_) != 0 ||
        ::rte_eth_dev_configure(port_, 1, 1, &nothing_special) != 0 ||
        ::rte_eth_rx_queue_setup(port_, 0, 0, SOCKET_ID_ANY, nullptr, pool.mempool()) != 0 ||
        ::rte_eth_tx_queue_setup(port_, 0, 0, SOCKET_ID_ANY, nullptr) != 0 ||
        ::rte_eth_dev_start(port_) != 0)
      throw std::runtime_error("no af_packet driver on " + interface);
  }
  ~Driver() {
    ::rte_eth_dev_stop(port_);
    ::rte_vdev_uninit(kDriver);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  unsigned receive(std::span<rte_mbuf*> burst) {
    return ::rte_eth_rx_burst(port_, 0, burst.data(), static_cast<uint16_t>(burst.size()));
  }
  unsigned transmit(std::span<rte_mbuf*> burst) {
    return ::rte_eth_tx_burst(port_, 0, burst.data(), static_cast<uint16_t>(burst.size()));
  }

 private:
  UniqueFd reservation_;
  uint16_t port_ = 0;
};

void send(Driver& driver, FramePool& pool, const Headers& headers, Clock::duration length) {
  const auto end = Clock::now() + length;
  std::array<rte_mbuf*, kBurst> burst;
  unsigned waiting = 0;
  while (Clock::now() < end) {
    while (waiting < kBurst) {
      rte_mbuf* const frame = pool.allocate();
      if (frame == nullptr) break;
      std::memcpy(rte_pktmbuf_mtod(frame, void*), &headers, sizeof headers);
      frame->data_len = kFrameBytes;
      frame->pkt_len = kFrameBytes;
      burst[waiting++] = frame;
    }
    const unsigned taken = driver.transmit({burst.data(), waiting});
    std::copy(burst.begin() + taken, burst.begin() + waiting, burst.begin());
    waiting -= taken;
  }
  FramePool::free_bulk({burst.data(), waiting});
}

// Bytes per nanosecond, which is GB/s.
double receive(Driver& driver, Clock::duration length) {
  std::array<rte_mbuf*, kBurst> burst;
  Clock::time_point first{}, last{};
  uint64_t bytes = 0;
  const auto end = Clock::now() + length;
  while (Clock::now() < end) {
    const unsigned count = driver.receive(burst);
    if (count == 0) {
      ::sched_yield();
      continue;
    }
    for (const rte_mbuf* frame : std::span(burst).first(count))
      if (frame->pkt_len == kFrameBytes) bytes += frame->pkt_len;
    FramePool::free_bulk({burst.data(), count});
    if (bytes == 0) continue;
    last = Clock::now();
    if (first == Clock::time_point{}) first = last;
  }
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(last - first).count();
  return ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(ns);
}

Clock::duration seconds(const char* text) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::stod(text)));
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool sends = what == "send" && argc == 7;
  if (!sends && !(what == "receive" && argc == 4)) {
    std::fprintf(stderr,
                 "frame_pump send INTERFACE SOURCE_IP DESTINATION_IP DESTINATION_MAC SECONDS |\n"
                 "           receive INTERFACE SECONDS\n");
    return 2;
  }
  const Eal eal(EalOptions{});
  FramePool pool("pump", kPoolFrames, kRoomBytes);
  Driver driver(argv[2], pool);
  if (sends) {
    send(driver, pool, headers_of(argv[3], argv[4], argv[5]), seconds(argv[6]));
  } else {
    std::printf("ready\n");
    std::fflush(stdout);
    std::printf("%.3f\n", receive(driver, seconds(argv[3])));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "frame_pump: %s\n", failure.what());
    return 1;
  }
}
