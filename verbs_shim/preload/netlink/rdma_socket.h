// Sockets of NETLINK_RDMA: to the program a netlink socket, to the kernel one end of a pair whose
// other end is this library's. What the program sends is answered by netlink::Responder, in the
// thread that sends; the answers lie in the socket, one datagram at a time, so that poll(2) and
// waiting are the kernel's. The next one of a dump is put there when one has been taken.
//
// A forked child does not answer what it sends, nor goes on with a dump: the socket is its
// parent's.
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "verbs_shim/preload/fd_table.h"

namespace rocemu::preload {

class RdmaSocket;

// Makes one, as socket(2) does with the flags in `type`. -1 with errno; EPROTONOSUPPORT when there
// is no NIC.
int open_rdma_socket(int type);

extern const rocemu_fd_watch kRdmaSocketWatch;

// The socket that is behind the descriptor, or null. Two loads for any other descriptor.
RdmaSocket* check_rdma_socket(int fd, FdEntry* entry);
inline RdmaSocket* find_rdma_socket(int fd) {
  FdEntry* entry = find_entry(fd);
  if (entry == nullptr) [[likely]]
    return nullptr;
  return check_rdma_socket(fd, entry);
}

// Each answers as the system call of its name.
int bind_rdma_socket(RdmaSocket& socket, const sockaddr* address, socklen_t bytes);
int name_rdma_socket(RdmaSocket& socket, sockaddr* address, socklen_t* bytes);
int set_rdma_socket_option(RdmaSocket& socket, int name, const void* value, socklen_t bytes);
ssize_t send_to_rdma_socket(RdmaSocket& socket, const iovec* parts, size_t count);

// To be called before and after something is taken from the socket: has the next answer there.
void refill_rdma_socket(RdmaSocket& socket);

// Writes the sender's address, the kernel's, and how long it is.
void name_kernel(void* address, socklen_t* bytes);

}  // namespace rocemu::preload
