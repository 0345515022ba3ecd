#include "dpdk_io/kernel/port_filter.h"

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace rocemu::dpdk_io {

bool attach_port_filter(int packet_socket, uint16_t udp_port, Passed passed) noexcept {
  constexpr uint32_t kPacketType = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
  constexpr uint32_t kTagged = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT);
  constexpr uint32_t kEthernet = 14;
  constexpr uint32_t kIpv4 = 20;
  constexpr uint32_t kIpv6 = 40;
  constexpr uint32_t kFragment = 0x3fff;  // more fragments, offset
  constexpr uint32_t kIpv4NoOptions = 0x45;
  const uint32_t datagram_bytes = passed == Passed::datagrams ? UINT32_MAX : 0;
  const uint32_t other_bytes = passed == Passed::others ? UINT32_MAX : 0;
  // Offsets of jumps count from the next instruction: when true, when false.
  sock_filter code[] = {
      /*  0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPacketType),
      /*  1 */ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, PACKET_MULTICAST, 19, 0),
      /*  2 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kTagged),
      /*  3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 16),
      /*  4 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
      /*  5 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 9, 0),
      /*  6 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 13),
      /*  7 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + 6),
      /*  8 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kFragment, 11, 0),
      /*  9 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet),
      /* 10 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIpv4NoOptions, 0, 9),
      /* 11 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 9),
      /* 12 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 7),
      /* 13 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv4 + 2),
      /* 14 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 4, 5),
      /* 15 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 6),
      /* 16 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
      /* 17 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv6 + 2),
      /* 18 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 0, 1),
      /* 19 */ BPF_STMT(BPF_RET | BPF_K, datagram_bytes),
      /* 20 */ BPF_STMT(BPF_RET | BPF_K, other_bytes),
      /* 21 */ BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return ::setsockopt(packet_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace rocemu::dpdk_io
