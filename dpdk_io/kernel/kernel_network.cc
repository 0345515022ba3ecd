#include "dpdk_io/kernel/kernel_network.h"

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/unique_fd.h"
#include "dpdk_io/kernel/socket_address.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint16_t kDiscardPort = 9;  // RFC 863
constexpr unsigned kEventGroups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
constexpr size_t kReceiveBytes = 32 * 1024;  // the most of a dump that the kernel sends at once
constexpr size_t kRequestBytes = 512;
constexpr int kAnswerSeconds = 1;  // the kernel answers at once; in case it does not

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::unique_ptr<mnl_socket, int (*)(mnl_socket*)> open_socket(unsigned groups, int flags) {
  std::unique_ptr<mnl_socket, int (*)(mnl_socket*)> socket(
      ::mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | flags), ::mnl_socket_close);
  if (socket == nullptr) fail("can't open a netlink socket");
  if (::mnl_socket_bind(socket.get(), groups, MNL_SOCKET_AUTOPID) != 0)
    fail("can't bind a netlink socket");
  const timeval limit{kAnswerSeconds, 0};
  ::setsockopt(::mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return socket;
}

// One request with its fixed header and attributes.
class Request {
 public:
  Request(uint16_t type, uint16_t flags) : header_(::mnl_nlmsg_put_header(bytes_)) {
    header_->nlmsg_type = type;
    header_->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  }
  template <class Body>
  Body& body() {
    return *static_cast<Body*>(::mnl_nlmsg_put_extra_header(header_, sizeof(Body)));
  }
  void add(uint16_t type, uint32_t value) { ::mnl_attr_put_u32(header_, type, value); }
  void add(uint16_t type, const std::string& text) {
    ::mnl_attr_put_strz(header_, type, text.c_str());
  }
  void add(uint16_t type, const IpAddress& address) {
    if (address.is_ipv4()) {
      ::mnl_attr_put(header_, type, 4, address.ipv4_bytes());
    } else {
      ::mnl_attr_put(header_, type, address.bytes.size(), address.bytes.data());
    }
  }
  nlmsghdr* header() { return header_; }

 private:
  alignas(nlmsghdr) char bytes_[kRequestBytes]{};
  nlmsghdr* header_;
};

// Something that changes during a dump brings an event, after which it is asked for again.
void accept_changed_dump(char* bytes, int length) {
  auto* message = reinterpret_cast<nlmsghdr*>(bytes);
  for (; ::mnl_nlmsg_ok(message, length); message = ::mnl_nlmsg_next(message, &length))
    message->nlmsg_flags &= static_cast<uint16_t>(~NLM_F_DUMP_INTR);
}

// Sends the request and calls handle(const nlmsghdr&) for each message of the answer. False, and
// errno, when the kernel refuses or cannot be asked.
template <class Handle>
bool ask(mnl_socket* socket, Request& request, unsigned sequence, Handle handle) {
  request.header()->nlmsg_seq = sequence;
  const bool dump = (request.header()->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  if (!dump) request.header()->nlmsg_flags |= NLM_F_ACK;
  if (::mnl_socket_sendto(socket, request.header(), request.header()->nlmsg_len) < 0) return false;
  const auto callback = [](const nlmsghdr* message, void* data) {
    (*static_cast<Handle*>(data))(*message);
    return MNL_CB_OK;
  };
  alignas(nlmsghdr) char bytes[kReceiveBytes];
  for (;;) {
    const ssize_t length = ::mnl_socket_recvfrom(socket, bytes, sizeof bytes);
    if (length < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    accept_changed_dump(bytes, static_cast<int>(length));
    const int result = ::mnl_cb_run(bytes, static_cast<size_t>(length), sequence,
                                    ::mnl_socket_get_portid(socket), callback, &handle);
    if (result == MNL_CB_ERROR) {
      if (errno == EPROTO) continue;  // the rest of an answer to an earlier request
      return false;
    }
    if (result == MNL_CB_STOP) return true;
  }
}

// libmnl's macro is C alone.
template <class Each>
void for_each_attribute(const nlmsghdr& message, size_t head_bytes, Each each) {
  auto* attribute =
      static_cast<const nlattr*>(::mnl_nlmsg_get_payload_offset(&message, head_bytes));
  const char* const end = static_cast<const char*>(::mnl_nlmsg_get_payload_tail(&message));
  while (
      ::mnl_attr_ok(attribute, static_cast<int>(end - reinterpret_cast<const char*>(attribute)))) {
    each(attribute);
    attribute = ::mnl_attr_next(attribute);
  }
}

uint8_t family_of(const IpAddress& address) { return address.is_ipv4() ? AF_INET : AF_INET6; }
uint8_t bits_of(const IpAddress& address) { return address.is_ipv4() ? 32 : 128; }

std::optional<IpAddress> address_in(const nlattr* attribute, int family) {
  const size_t length = ::mnl_attr_get_payload_len(attribute);
  if (family == AF_INET && length == 4)
    return IpAddress::of_ipv4(::mnl_attr_get_payload(attribute));
  if (family == AF_INET6 && length == 16)
    return IpAddress::of_ipv6(::mnl_attr_get_payload(attribute));
  return std::nullopt;
}

KernelInterface describe_link(const nlmsghdr& message) {
  const auto& link = *static_cast<const ifinfomsg*>(::mnl_nlmsg_get_payload(&message));
  KernelInterface interface;
  interface.index = static_cast<unsigned>(link.ifi_index);
  interface.enabled = (link.ifi_flags & IFF_UP) != 0;
  interface.running = interface.enabled && (link.ifi_flags & IFF_RUNNING) != 0;
  interface.ethernet = link.ifi_type == ARPHRD_ETHER;
  interface.loopback = (link.ifi_flags & IFF_LOOPBACK) != 0;
  for_each_attribute(message, sizeof(ifinfomsg), [&](const nlattr* attribute) {
    const uint16_t length = ::mnl_attr_get_payload_len(attribute);
    switch (::mnl_attr_get_type(attribute)) {
      case IFLA_IFNAME:
        interface.name = ::mnl_attr_get_str(attribute);
        break;
      case IFLA_MTU:
        if (length == sizeof(uint32_t)) interface.mtu_bytes = ::mnl_attr_get_u32(attribute);
        break;
      case IFLA_ADDRESS:
        if (interface.ethernet && length == interface.mac.size())
          std::memcpy(interface.mac.data(), ::mnl_attr_get_payload(attribute), length);
        break;
      default:
        break;
    }
  });
  return interface;
}

struct OwnedAddress {
  unsigned interface_index;
  LinkAddress own;
};

// Empty for one that cannot be used (yet).
std::optional<OwnedAddress> describe_address(const nlmsghdr& message) {
  const auto& head = *static_cast<const ifaddrmsg*>(::mnl_nlmsg_get_payload(&message));
  uint32_t flags = head.ifa_flags;
  std::optional<IpAddress> address, local;
  for_each_attribute(message, sizeof(ifaddrmsg), [&](const nlattr* attribute) {
    switch (::mnl_attr_get_type(attribute)) {
      case IFA_ADDRESS:
        address = address_in(attribute, head.ifa_family);
        break;
      case IFA_LOCAL:  // ours; on a point-to-point link IFA_ADDRESS is the peer's
        local = address_in(attribute, head.ifa_family);
        break;
      case IFA_FLAGS:
        if (::mnl_attr_get_payload_len(attribute) == sizeof(uint32_t))
          flags = ::mnl_attr_get_u32(attribute);
        break;
      default:
        break;
    }
  });
  if (local) address = local;
  if (!address || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0) return std::nullopt;
  return OwnedAddress{head.ifa_index, {*address, head.ifa_prefixlen}};
}

template <class Each>
void for_each_address(mnl_socket* socket, unsigned sequence, Each each) {
  Request request(RTM_GETADDR, NLM_F_DUMP);
  request.body<ifaddrmsg>().ifa_family = AF_UNSPEC;
  const bool asked = ask(socket, request, sequence, [&](const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWADDR) return;
    if (const auto owned = describe_address(message)) each(*owned);
  });
  if (!asked) fail("can't read addresses by netlink");
}

template <class Describe>
std::optional<KernelInterface> find_link(mnl_socket* socket, unsigned sequence, Describe describe) {
  Request request(RTM_GETLINK, 0);
  describe(request);
  std::optional<KernelInterface> found;
  const bool asked = ask(socket, request, sequence, [&](const nlmsghdr& message) {
    if (message.nlmsg_type == RTM_NEWLINK) found = describe_link(message);
  });
  if (!asked && errno != ENODEV) fail("can't read interfaces by netlink");
  return found;
}

}  // namespace

KernelNetwork::KernelNetwork()
    : requests_(open_socket(0, 0)), events_(open_socket(kEventGroups, SOCK_NONBLOCK)) {}

KernelNetwork::~KernelNetwork() = default;

std::optional<KernelInterface> KernelNetwork::interface_named(const std::string& name) {
  if (name.empty() || name.size() >= IF_NAMESIZE) return std::nullopt;
  const auto found = find_link(requests_.get(), ++sequence_, [&](Request& request) {
    request.body<ifinfomsg>().ifi_family = AF_UNSPEC;
    request.add(IFLA_IFNAME, name);
  });
  return found ? interface_at(found->index) : std::nullopt;
}

std::optional<KernelInterface> KernelNetwork::interface_at(unsigned index) {
  auto found = find_link(requests_.get(), ++sequence_, [&](Request& request) {
    auto& link = request.body<ifinfomsg>();
    link.ifi_family = AF_UNSPEC;
    link.ifi_index = static_cast<int>(index);
  });
  if (!found) return std::nullopt;
  for_each_address(requests_.get(), ++sequence_, [&](const OwnedAddress& owned) {
    if (owned.interface_index == index) found->addresses.push_back(owned.own);
  });
  return found;
}

std::optional<KernelInterface> KernelNetwork::interface_with(const IpAddress& address) {
  unsigned index = 0;
  for_each_address(requests_.get(), ++sequence_, [&](const OwnedAddress& owned) {
    if (owned.own.address == address) index = owned.interface_index;
  });
  return index != 0 ? interface_at(index) : std::nullopt;
}

std::optional<NextHop> KernelNetwork::route(const IpAddress& destination, unsigned index) noexcept {
  Request request(RTM_GETROUTE, 0);
  auto& route = request.body<rtmsg>();
  route.rtm_family = family_of(destination);
  route.rtm_dst_len = bits_of(destination);
  request.add(RTA_DST, destination);
  if (index != 0) request.add(RTA_OIF, index);
  std::optional<NextHop> hop;
  const bool asked = ask(requests_.get(), request, ++sequence_, [&](const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWROUTE) return;
    const auto& found = *static_cast<const rtmsg*>(::mnl_nlmsg_get_payload(&message));
    if (found.rtm_type != RTN_UNICAST && found.rtm_type != RTN_LOCAL) return;
    hop = NextHop{0, destination, found.rtm_type == RTN_LOCAL};
    for_each_attribute(message, sizeof(rtmsg), [&](const nlattr* attribute) {
      switch (::mnl_attr_get_type(attribute)) {
        case RTA_OIF:
          if (::mnl_attr_get_payload_len(attribute) == sizeof(uint32_t))
            hop->interface_index = ::mnl_attr_get_u32(attribute);
          break;
        case RTA_GATEWAY:
          if (const auto gateway = address_in(attribute, found.rtm_family)) hop->address = *gateway;
          break;
        case RTA_VIA: {  // an IPv4 route over an IPv6 gateway
          constexpr size_t kFamilyBytes = sizeof(rtvia);
          const auto* via = static_cast<const rtvia*>(::mnl_attr_get_payload(attribute));
          if (::mnl_attr_get_payload_len(attribute) == kFamilyBytes + 16 &&
              via->rtvia_family == AF_INET6)
            hop->address = IpAddress::of_ipv6(via->rtvia_addr);
          break;
        }
        default:
          break;
      }
    });
  });
  return asked ? hop : std::nullopt;
}

Neighbour KernelNetwork::neighbour(unsigned index, const IpAddress& address) noexcept {
  Request request(RTM_GETNEIGH, 0);
  auto& head = request.body<ndmsg>();
  head.ndm_family = family_of(address);
  head.ndm_ifindex = static_cast<int>(index);
  request.add(NDA_DST, address);
  Neighbour neighbour;
  ask(requests_.get(), request, ++sequence_, [&](const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWNEIGH) return;
    const auto& found = *static_cast<const ndmsg*>(::mnl_nlmsg_get_payload(&message));
    if (found.ndm_state == NUD_INCOMPLETE) neighbour.state = Neighbour::State::resolving;
    if (found.ndm_state == NUD_FAILED) neighbour.state = Neighbour::State::failed;
    constexpr int kUsable =
        NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
    if ((found.ndm_state & kUsable) == 0) return;
    for_each_attribute(message, sizeof(ndmsg), [&](const nlattr* attribute) {
      if (::mnl_attr_get_type(attribute) != NDA_LLADDR ||
          ::mnl_attr_get_payload_len(attribute) != neighbour.mac.size())
        return;
      std::memcpy(neighbour.mac.data(), ::mnl_attr_get_payload(attribute), neighbour.mac.size());
      neighbour.state = Neighbour::State::known;
    });
  });
  return neighbour;
}

void KernelNetwork::make_kernel_resolve(unsigned index, const IpAddress& destination) noexcept {
  const UniqueFd socket(
      ::socket(family_of(destination), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return;
  char name[IF_NAMESIZE];
  if (::if_indextoname(index, name) != nullptr)
    ::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, name,
                 static_cast<socklen_t>(std::strlen(name)));
  const SocketAddress to = to_socket_address(destination, kDiscardPort, index);
  ::sendto(socket.get(), nullptr, 0, 0, to.get(), to.length);
}

int KernelNetwork::events_fd() const noexcept { return ::mnl_socket_get_fd(events_.get()); }

bool KernelNetwork::drain_events() noexcept {
  char bytes[kReceiveBytes];
  bool any = false;
  for (;;) {
    const ssize_t length = ::mnl_socket_recvfrom(events_.get(), bytes, sizeof bytes);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == ENOBUFS) {  // some were lost: the more reason to look
      any = true;
      continue;
    }
    if (length < 0) return any;
    any = true;
  }
}

}  // namespace rocemu::dpdk_io
