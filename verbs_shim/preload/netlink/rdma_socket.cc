#include "verbs_shim/preload/netlink/rdma_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "verbs_shim/netlink/responder.h"
#include "verbs_shim/preload/hidden_descriptor.h"
#include "verbs_shim/preload/netlink/nic_model.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

// Never freed, since a thread may still hold one that another has closed; used again instead.
class RdmaSocket {
 public:
  RdmaSocket() : responder_(nic_.model()) {}
  RdmaSocket(const RdmaSocket&) = delete;
  RdmaSocket& operator=(const RdmaSocket&) = delete;

  void open(int fd, int far_end) {
    fd_ = fd;
    far_end_.hold(far_end);
    responder_.start_anew();
    set_port(static_cast<uint32_t>(getpid()));
  }
  void close() {
    far_end_.close();
    nic_.close();
    fd_ = -1;
  }

  uint32_t port() const { return port_; }
  void set_port(uint32_t port) {
    port_ = port;
    responder_.set_port(port);
  }
  void set_extended_ack(bool on) { responder_.set_extended_ack(on); }

  int take(const char* datagram, size_t bytes) {
    if (const int error = responder_.take(datagram, bytes)) return error;
    refill();
    return 0;
  }

  // Puts answers into the socket until one lies there.
  void refill() {
    int waiting = 0;
    while (ioctl(fd_, FIONREAD, &waiting) == 0 && waiting == 0) {
      const size_t bytes = responder_.answer(datagram_);
      if (bytes == 0 || !far_end_.is_there()) return;
      if (real().send(far_end_.number(), datagram_, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
    }
  }

  RdmaSocket* next_unused = nullptr;

 private:
  int fd_ = -1;
  HiddenDescriptor far_end_;
  uint32_t port_ = 0;
  NicModel nic_;
  netlink::Responder responder_;
  char datagram_[netlink::kDatagramBytes];
};

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
RdmaSocket* unused = nullptr;

// Held while a socket is used: by one thread at a time, which is not cancelled in between.
class Lock {
 public:
  Lock() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    pthread_mutex_lock(&mutex);
  }
  ~Lock() {
    pthread_mutex_unlock(&mutex);
    pthread_setcancelstate(cancel_state_, nullptr);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int cancel_state_;
};

void before_fork() { pthread_mutex_lock(&mutex); }
void after_fork() { pthread_mutex_unlock(&mutex); }

// While no other thread can be in the middle of a fork, which would not know of these.
__attribute__((constructor)) void on_load() {
  real();
  if (active()) pthread_atfork(before_fork, after_fork, after_fork);
}

RdmaSocket& behind(void* context) { return *static_cast<RdmaSocket*>(context); }

ssize_t on_write(void* context, const void* data, size_t bytes) {
  const iovec part = {const_cast<void*>(data), bytes};
  return send_to_rdma_socket(behind(context), &part, 1);
}

void on_close(void* context) {
  RdmaSocket* const socket = &behind(context);
  const Lock lock;
  socket->close();
  socket->next_unused = unused;
  unused = socket;
}

void before_read(void* context, int) { refill_rdma_socket(behind(context)); }

bool nic_is_there() { return syscall(SYS_faccessat, AT_FDCWD, sysfs_tree(), F_OK) == 0; }

RdmaSocket* new_socket(const int (&ends)[2]) {
  const Lock lock;
  RdmaSocket* socket = unused;
  if (socket != nullptr) {
    unused = socket->next_unused;
  } else {
    void* const memory = malloc(sizeof(RdmaSocket));
    if (memory == nullptr) return nullptr;
    socket = new (memory) RdmaSocket();
  }
  socket->open(ends[0], ends[1]);
  return socket;
}

}  // namespace

const rocemu_fd_watch kRdmaSocketWatch = {&on_write, &on_close, nullptr, nullptr, &before_read};

int open_rdma_socket(int type) {
  if (!nic_is_there()) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  int ends[2];
  const int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | flags, 0, ends) != 0) return -1;
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  RdmaSocket* const socket = new_socket(ends);
  int error = ENOMEM;
  if (socket != nullptr) {
    error = rocemu_preload_watch_fd_v4(ends[0], &kRdmaSocketWatch, socket);
    if (error == 0) return ends[0];
    on_close(socket);
  } else {
    real().close(ends[1]);
  }
  real().close(ends[0]);
  errno = error;
  return -1;
}

RdmaSocket* check_rdma_socket(int fd, FdEntry* entry) {
  if (entry->watch.load(std::memory_order_acquire) != &kRdmaSocketWatch || !in_owner_process() ||
      check_entry(fd, entry) == nullptr)
    return nullptr;
  return static_cast<RdmaSocket*>(entry->context);
}

int bind_rdma_socket(RdmaSocket& socket, const sockaddr* address, socklen_t bytes) {
  sockaddr_nl wanted;
  if (address == nullptr || bytes < sizeof(wanted)) {
    errno = EINVAL;
    return -1;
  }
  memcpy(&wanted, address, sizeof(wanted));
  if (wanted.nl_family != AF_NETLINK) {
    errno = EINVAL;
    return -1;
  }
  const Lock lock;
  if (wanted.nl_pid != 0) socket.set_port(wanted.nl_pid);
  return 0;
}

int name_rdma_socket(RdmaSocket& socket, sockaddr* address, socklen_t* bytes) {
  if (address == nullptr || bytes == nullptr) {
    errno = EFAULT;
    return -1;
  }
  sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  const Lock lock;
  name.nl_pid = socket.port();
  memcpy(address, &name, *bytes < sizeof(name) ? *bytes : sizeof(name));
  *bytes = sizeof(name);
  return 0;
}

// The options are SOL_NETLINK's; those that change nothing here are taken, too.
int set_rdma_socket_option(RdmaSocket& socket, int name, const void* value, socklen_t bytes) {
  int on = 0;
  if (value == nullptr || bytes < sizeof(on)) {
    errno = EINVAL;
    return -1;
  }
  memcpy(&on, value, sizeof(on));
  const Lock lock;
  if (name == NETLINK_EXT_ACK) socket.set_extended_ack(on != 0);
  return 0;
}

ssize_t send_to_rdma_socket(RdmaSocket& socket, const iovec* parts, size_t count) {
  char datagram[netlink::kDatagramBytes];
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (parts[i].iov_len > sizeof(datagram) - bytes) {
      errno = EMSGSIZE;
      return -1;
    }
    if (parts[i].iov_len > 0) memcpy(datagram + bytes, parts[i].iov_base, parts[i].iov_len);
    bytes += parts[i].iov_len;
  }
  const Lock lock;
  if (const int error = socket.take(datagram, bytes)) {
    errno = error;
    return -1;
  }
  return static_cast<ssize_t>(bytes);
}

void refill_rdma_socket(RdmaSocket& socket) {
  const int saved = errno;
  {
    const Lock lock;
    socket.refill();
  }
  errno = saved;
}

void name_kernel(void* address, socklen_t* bytes) {
  if (address == nullptr || bytes == nullptr) return;
  sockaddr_nl name = {};
  name.nl_family = AF_NETLINK;
  memcpy(address, &name, *bytes < sizeof(name) ? *bytes : sizeof(name));
  *bytes = sizeof(name);
}

}  // namespace rocemu::preload
