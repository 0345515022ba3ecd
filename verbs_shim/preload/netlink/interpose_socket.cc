// socket, and what is done with sockets of NETLINK_RDMA; all other descriptors are the kernel's.
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "verbs_shim/preload/netlink/rdma_socket.h"
#include "verbs_shim/preload/real.h"

using namespace rocemu::preload;

namespace {

// libibverbs and librdmacm ask by libnl for devices first and read sysfs if the socket can't be
// had. They are to: sysfs says the same and more, and asks no NIC.
bool is_libnl(const void* caller) {
  Dl_info found;
  if (dladdr(caller, &found) == 0 || found.dli_fname == nullptr) return false;
  const char* const slash = strrchr(found.dli_fname, '/');
  const char* const name = slash == nullptr ? found.dli_fname : slash + 1;
  constexpr char kLibnl[] = "libnl-3";
  return strncmp(name, kLibnl, sizeof(kLibnl) - 1) == 0;
}

__attribute__((noinline)) int open_unless_libnl(int type, const void* caller) {
  if (is_libnl(caller)) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return open_rdma_socket(type);
}

__attribute__((noinline)) ssize_t receive(RdmaSocket& socket, int fd, msghdr* message, int flags) {
  refill_rdma_socket(socket);
  void* const name = message->msg_name;
  socklen_t name_bytes = message->msg_namelen;
  const ssize_t got = real().recvmsg(fd, message, flags);
  if (got < 0) return got;
  name_kernel(name, &name_bytes);
  if (name != nullptr) message->msg_namelen = name_bytes;
  if ((flags & MSG_PEEK) == 0) refill_rdma_socket(socket);
  return got;
}

__attribute__((noinline)) ssize_t receive(RdmaSocket& socket, int fd, void* data, size_t bytes,
                                          int flags, sockaddr* address, socklen_t* address_bytes) {
  iovec part = {data, bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t got = receive(socket, fd, &message, flags);
  if (got >= 0) name_kernel(address, address_bytes);
  return got;
}

}  // namespace

ROCEMU_EXPORT int socket(int domain, int type, int protocol) noexcept {
  const Real& next = real();
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA && active())
    return open_unless_libnl(type, __builtin_return_address(0));
  return next.socket(domain, type, protocol);
}

ROCEMU_EXPORT int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return bind_rdma_socket(*socket, address, bytes);
  return real().bind(fd, address, bytes);
}

ROCEMU_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return name_rdma_socket(*socket, address, bytes);
  return real().getsockname(fd, address, bytes);
}

ROCEMU_EXPORT int setsockopt(int fd, int level, int name, const void* value,
                             socklen_t bytes) noexcept {
  if (level == SOL_NETLINK) [[unlikely]] {
    RdmaSocket* const socket = find_rdma_socket(fd);
    if (socket != nullptr) return set_rdma_socket_option(*socket, name, value, bytes);
  }
  return real().setsockopt(fd, level, name, value, bytes);
}

ROCEMU_EXPORT ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]] {
    const iovec part = {const_cast<void*>(data), bytes};
    return send_to_rdma_socket(*socket, &part, 1);
  }
  return real().send(fd, data, bytes, flags);
}

ROCEMU_EXPORT ssize_t sendto(int fd, const void* data, size_t bytes, int flags,
                             const sockaddr* address, socklen_t address_bytes) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]] {
    const iovec part = {const_cast<void*>(data), bytes};
    return send_to_rdma_socket(*socket, &part, 1);
  }
  return real().sendto(fd, data, bytes, flags, address, address_bytes);
}

ROCEMU_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return send_to_rdma_socket(*socket, message->msg_iov, message->msg_iovlen);
  return real().sendmsg(fd, message, flags);
}

ROCEMU_EXPORT ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return receive(*socket, fd, data, bytes, flags, nullptr, nullptr);
  return real().recv(fd, data, bytes, flags);
}

ROCEMU_EXPORT ssize_t recvfrom(int fd, void* data, size_t bytes, int flags, sockaddr* address,
                               socklen_t* address_bytes) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return receive(*socket, fd, data, bytes, flags, address, address_bytes);
  return real().recvfrom(fd, data, bytes, flags, address, address_bytes);
}

ROCEMU_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  RdmaSocket* const socket = find_rdma_socket(fd);
  if (socket != nullptr) [[unlikely]]
    return receive(*socket, fd, message, flags);
  return real().recvmsg(fd, message, flags);
}
