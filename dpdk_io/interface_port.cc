#include "dpdk_io/interface_port.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

#include "dpdk_io/udp_guard.h"

namespace rocemu::dpdk_io {
namespace {

// Frames of the largest path MTU fit, eight to a block, as tight as pages allow.
constexpr unsigned kRingFrameBytes = 4608;
constexpr unsigned kRingBlockBytes = 36864;
// The driver locks its rings in memory, of which ordinary users may have little (RLIMIT_MEMLOCK, 8
// MB by default): the largest that can be had is taken. What has no room in it is lost.
constexpr unsigned kRingFrames[] = {1024, 512, 256, 128, 64, 32};
constexpr size_t kTransmitBurst = 64;
// Of a frame in the ring the head takes so much (linux/if_packet.h).
static_assert(InterfacePort::kFrameBytes ==
              kRingFrameBytes - (TPACKET2_HDRLEN - sizeof(sockaddr_ll)));

constexpr char kPrivileges[] =
    "a port on a network interface needs CAP_NET_RAW and CAP_NET_ADMIN: run as root, or in a "
    "network of its own (unshare -Urn), or use udp:ADDRESS, which needs no privilege";

std::runtime_error error(const std::string& interface, const std::string& why) {
  return std::runtime_error("interface " + interface + ": " + why);
}

void raise_memory_lock_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
}

// The frames each ring has; 0 when the driver cannot be had at all.
unsigned make_driver(const std::string& name, const std::string& interface) {
  raise_memory_lock_limit();
  ::rte_log_set_level_pattern("pmd.net.af_packet", RTE_LOG_EMERG);
  for (const unsigned frames : kRingFrames) {
    const std::string arguments = "iface=" + interface +
                                  ",framesz=" + std::to_string(kRingFrameBytes) +
                                  ",blocksz=" + std::to_string(kRingBlockBytes) +
                                  ",framecnt=" + std::to_string(frames) + ",qpairs=1";
    if (::rte_vdev_init(name.c_str(), arguments.c_str()) == 0) return frames;
  }
  return 0;
}

std::set<int> packet_sockets() {
  std::set<int> found;
  DIR* const directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    int domain = 0;
    socklen_t length = sizeof domain;
    if (fd > 0 && ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
        domain == AF_PACKET)
      found.insert(fd);
  }
  ::closedir(directory);
  return found;
}

// Passes datagrams to one UDP port that came in for this machine, whole ones (a fragment cannot be
// used). No IPv4 options, no IPv6 extension headers, no VLAN tag: those frames are the kernel's.
bool attach_filter(int fd, uint16_t udp_port) {
  constexpr uint32_t kPacketType = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
  constexpr uint32_t kEthernet = 14;
  constexpr uint32_t kIpv4 = 20;
  constexpr uint32_t kIpv6 = 40;
  constexpr uint32_t kFragment = 0x3fff;  // more fragments, offset
  constexpr uint32_t kIpv4NoOptions = 0x45;
  // Offsets of jumps count from the next instruction: when true, when false.
  sock_filter code[] = {
      /*  0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPacketType),
      /*  1 */ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, PACKET_MULTICAST, 16, 0),
      /*  2 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
      /*  3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 9, 0),
      /*  4 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 13),
      /*  5 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + 6),
      /*  6 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kFragment, 11, 0),
      /*  7 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet),
      /*  8 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIpv4NoOptions, 0, 9),
      /*  9 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 9),
      /* 10 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 7),
      /* 11 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv4 + 2),
      /* 12 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 4, 5),
      /* 13 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 6),
      /* 14 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
      /* 15 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv6 + 2),
      /* 16 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 0, 1),
      /* 17 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      /* 18 */ BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

// DPDK's start sets promiscuous mode to what it has been told; so tell it what it is.
bool is_promiscuous(const std::string& interface) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  return ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & IFF_PROMISC) != 0;
}

}  // namespace

InterfacePort::InterfacePort(const std::string& interface, uint16_t udp_port, FramePool& pool)
    : interface_(interface) {
  if (const UniqueFd allowed(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)); !allowed)
    throw error(interface, errno == EPERM ? kPrivileges : std::strerror(errno));
  guard_ = guard_udp_port(interface, udp_port);

  static std::atomic<unsigned> next_number{0};
  device_name_ = "net_af_packet" + std::to_string(next_number++);
  const std::set<int> before = packet_sockets();
  ring_frames_ = make_driver(device_name_, interface);
  if (ring_frames_ == 0)
    throw error(interface,
                "DPDK's af_packet driver could not be had: raise the limit of locked memory "
                "(ulimit -l), or use udp:ADDRESS");
  try {
    for (const int fd : packet_sockets()) {
      if (before.contains(fd)) continue;
      if (!attach_filter(fd, udp_port))
        throw error(interface, std::string("socket filter: ") + std::strerror(errno));
      ring_fd_ = fd;  // the last: the driver's first one is for questions alone
    }
    if (ring_fd_ < 0)
      throw error(interface, "the sockets of DPDK's driver are not in /proc/self/fd");
    start(pool);
  } catch (...) {
    ::rte_vdev_uninit(device_name_.c_str());
    throw;
  }
}

void InterfacePort::start(FramePool& pool) {
  const auto check = [this](int result, const char* what) {
    if (result == -EPERM) throw error(interface_, kPrivileges);
    if (result < 0) throw error(interface_, std::string(what) + ": " + ::rte_strerror(-result));
  };
  check(::rte_eth_dev_get_port_by_name(device_name_.c_str(), &port_id_), "DPDK's port");
  const rte_eth_conf nothing_special{};
  check(::rte_eth_dev_configure(port_id_, 1, 1, &nothing_special), "configuring");
  check(::rte_eth_rx_queue_setup(port_id_, 0, 0, SOCKET_ID_ANY, nullptr, pool.mempool()),
        "receive queue");
  check(::rte_eth_tx_queue_setup(port_id_, 0, 0, SOCKET_ID_ANY, nullptr), "transmit queue");
  if (is_promiscuous(interface_)) ::rte_eth_promiscuous_enable(port_id_);
  check(::rte_eth_dev_start(port_id_), "starting");
  // What came before the filter was there.
  rte_mbuf* frame;
  for (unsigned i = 0; i < ring_frames_ && ::rte_eth_rx_burst(port_id_, 0, &frame, 1) == 1; ++i)
    FramePool::free(frame);
}

InterfacePort::~InterfacePort() {
  ::rte_eth_dev_stop(port_id_);
  ::rte_vdev_uninit(device_name_.c_str());
}

unsigned InterfacePort::receive(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  const unsigned count =
      ::rte_eth_rx_burst(port_id_, 0, burst.data(), static_cast<uint16_t>(burst.size()));
  uint64_t bytes = 0;
  for (const rte_mbuf* frame : burst.first(count)) bytes += frame->pkt_len;
  stats_.rx_frames += count;
  stats_.rx_bytes += bytes;
  return count;
}

unsigned InterfacePort::transmit(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  const size_t most = std::min(burst.size(), kTransmitBurst);
  if (most == 0) return 0;
  // The driver frees what it takes.
  std::array<uint32_t, kTransmitBurst> length_bytes;
  for (size_t i = 0; i < most; ++i) length_bytes[i] = burst[i]->pkt_len;
  const unsigned count = ::rte_eth_tx_burst(port_id_, 0, burst.data(), static_cast<uint16_t>(most));
  stats_.tx_frames += count;
  for (unsigned i = 0; i < count; ++i) stats_.tx_bytes += length_bytes[i];
  return count;
}

int InterfacePort::poll_fd() const noexcept { return ring_fd_; }

// An interface that went down leaves an error in the socket, which would keep it readable.
bool InterfacePort::has_work() const noexcept {
  int ignored;
  socklen_t length = sizeof ignored;
  ::getsockopt(ring_fd_, SOL_SOCKET, SO_ERROR, &ignored, &length);
  return false;
}

}  // namespace rocemu::dpdk_io
