#include "emulator/lab/interfaces.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace rocemu::lab {
namespace {

std::system_error failure(const std::string& what) {
  return {errno, std::generic_category(), what};
}

unsigned index_of(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) throw failure(name);
  return index;
}

// One request with its fixed header and attributes.
class Request {
 public:
  Request(uint16_t type, uint16_t flags) : header_(::mnl_nlmsg_put_header(bytes_)) {
    header_->nlmsg_type = type;
    header_->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  }
  template <class Body>
  Body& body() {
    return *static_cast<Body*>(::mnl_nlmsg_put_extra_header(header_, sizeof(Body)));
  }
  void add(uint16_t type, uint32_t value) { ::mnl_attr_put_u32(header_, type, value); }
  void add(uint16_t type, const std::string& text) {
    ::mnl_attr_put_strz(header_, type, text.c_str());
  }
  void add(uint16_t type, const void* bytes, size_t count) {
    ::mnl_attr_put(header_, type, count, bytes);
  }
  // Attributes that are added between open() and close() are inside this one.
  nlattr* open(uint16_t type) { return ::mnl_attr_nest_start(header_, type); }
  void close(nlattr* nest) { ::mnl_attr_nest_end(header_, nest); }

  // Returns when the kernel has done it; `what` is for the error's text.
  void send(const std::string& what) {
    const std::unique_ptr<mnl_socket, int (*)(mnl_socket*)> socket(
        ::mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC), ::mnl_socket_close);
    if (socket == nullptr || ::mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) != 0 ||
        ::mnl_socket_sendto(socket.get(), header_, header_->nlmsg_len) < 0)
      throw failure(what);
    alignas(nlmsghdr) char answer[4096];
    const ssize_t length = ::mnl_socket_recvfrom(socket.get(), answer, sizeof answer);
    if (length < 0 || ::mnl_cb_run(answer, static_cast<size_t>(length), 0, 0, nullptr, nullptr) < 0)
      throw failure(what);
  }

 private:
  alignas(nlmsghdr) char bytes_[512]{};
  nlmsghdr* header_;
};

}  // namespace

void add_bridge(const std::string& name) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.body<ifinfomsg>();
  request.add(IFLA_IFNAME, name);
  nlattr* info = request.open(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, std::string("bridge"));
  request.close(info);
  request.send("cannot make a bridge");
}

void add_veth(const std::string& name, unsigned mtu_bytes, const std::string& peer, pid_t pid) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  const auto add_end = [&](const std::string& end) {
    request.body<ifinfomsg>();
    request.add(IFLA_IFNAME, end);
    request.add(IFLA_MTU, mtu_bytes);
  };
  add_end(name);
  nlattr* info = request.open(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, std::string("veth"));
  nlattr* data = request.open(IFLA_INFO_DATA);
  nlattr* other = request.open(VETH_INFO_PEER);
  add_end(peer);
  request.add(IFLA_NET_NS_PID, static_cast<uint32_t>(pid));
  for (nlattr* nest : {other, data, info}) request.close(nest);
  request.send("cannot make a veth");
}

void bring_up(const std::string& name, unsigned mtu_bytes, const std::string& bridge) {
  Request request(RTM_NEWLINK, 0);
  auto& link = request.body<ifinfomsg>();
  link.ifi_index = static_cast<int>(index_of(name));
  link.ifi_flags = link.ifi_change = IFF_UP;
  if (mtu_bytes != 0) request.add(IFLA_MTU, mtu_bytes);
  if (!bridge.empty()) request.add(IFLA_MASTER, index_of(bridge));
  request.send("cannot set up " + name);
}

void add_address(const std::string& name, const std::string& address, uint8_t prefix_bits) {
  std::array<uint8_t, sizeof(in6_addr)> bytes{};
  const bool ipv4 = ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1;
  if (!ipv4) ::inet_pton(AF_INET6, address.c_str(), bytes.data());
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  auto& body = request.body<ifaddrmsg>();
  body.ifa_family = ipv4 ? AF_INET : AF_INET6;
  body.ifa_prefixlen = prefix_bits;
  body.ifa_flags = ipv4 ? 0 : IFA_F_NODAD;
  body.ifa_index = index_of(name);
  for (const uint16_t type : {IFA_LOCAL, IFA_ADDRESS})
    request.add(type, bytes.data(), ipv4 ? sizeof(in_addr) : sizeof(in6_addr));
  request.send("cannot give " + name + " the address " + address);
}

}  // namespace rocemu::lab
