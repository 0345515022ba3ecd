// frame_pump: what DPDK's af_packet driver moves over an interface, with the NIC's rings and
// nothing of a NIC. That is what bandwidth over an interface is measured against.
//
//   frame_pump send INTERFACE SOURCE_IP DESTINATION_IP DESTINATION_MAC SECONDS
//   frame_pump receive INTERFACE SECONDS
//
// Frames are those of a long RDMA WRITE with a path MTU of 4096: UDP to port 4791, 4158 bytes, the
// payload untouched. The receiver prints "ready", then what came by bytes and time since the first
// frame, in GB/s.
#include <arpa/inet.h>
#include <poll.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "dpdk_io/eal.h"
#include "dpdk_io/frame_pool.h"
#include "dpdk_io/interface_port.h"

namespace {

using Clock = std::chrono::steady_clock;
using rocemu::dpdk_io::Eal;
using rocemu::dpdk_io::EalOptions;
using rocemu::dpdk_io::FramePool;
using rocemu::dpdk_io::InterfacePort;

constexpr uint16_t kUdpPort = 4791;
constexpr uint16_t kFrameBytes = 4158;
constexpr unsigned kBurst = 32;
constexpr unsigned kPoolFrames = 8192;
constexpr int kPatienceMs = 100;

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

void send(InterfacePort& port, FramePool& pool, const Headers& headers, Clock::duration length) {
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
    const unsigned taken = port.transmit(0, {burst.data(), waiting});
    std::copy(burst.begin() + taken, burst.begin() + waiting, burst.begin());
    waiting -= taken;
  }
  FramePool::free_bulk({burst.data(), waiting});
}

// Bytes per nanosecond, which is GB/s.
double receive(InterfacePort& port, Clock::duration length) {
  std::array<rte_mbuf*, kBurst> burst;
  Clock::time_point first{}, last{};
  uint64_t bytes = 0;
  const auto end = Clock::now() + length;
  while (Clock::now() < end) {
    const unsigned count = port.receive(0, burst);
    if (count == 0) {
      pollfd fd{port.poll_fd(), POLLIN, 0};
      ::poll(&fd, 1, kPatienceMs);
      continue;
    }
    last = Clock::now();
    if (bytes == 0) first = last;
    for (const rte_mbuf* frame : std::span(burst).first(count)) bytes += frame->pkt_len;
    FramePool::free_bulk({burst.data(), count});
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
  FramePool pool("pump", kPoolFrames, InterfacePort::kFrameBytes);
  InterfacePort port(argv[2], kUdpPort, pool);
  if (sends) {
    send(port, pool, headers_of(argv[3], argv[4], argv[5]), seconds(argv[6]));
  } else {
    std::printf("ready\n");
    std::fflush(stdout);
    std::printf("%.3f\n", receive(port, seconds(argv[3])));
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
