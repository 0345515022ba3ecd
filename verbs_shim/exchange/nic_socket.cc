#include "verbs_shim/exchange/nic_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "verbs_shim/abi/control.h"

namespace rocemu::exchange {
namespace {

// `directory_fd` is an open descriptor of `directory`, by which a path too long for sun_path is
// reached. False when even that does not fit.
bool socket_address(const char* directory, int directory_fd, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  int length =
      snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, ROCEMU_SOCKET_NAME);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(address.sun_path)) {
    length = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
                      directory_fd, ROCEMU_SOCKET_NAME);
  }
  return length > 0 && static_cast<size_t>(length) < sizeof(address.sun_path);
}

}  // namespace

int connect_to_nic(const char* directory, const DescriptorCalls& calls, int& socket) {
  const int directory_fd = calls.open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) return errno;
  int error = 0;
  sockaddr_un address = {};
  const int fd = calls.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = errno;
  } else if (!socket_address(directory, directory_fd, address)) {
    error = ENAMETOOLONG;
  } else if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  calls.close(directory_fd);
  if (error == 0) {
    socket = fd;
  } else if (fd >= 0) {
    calls.close(fd);
  }
  return error;
}

}  // namespace rocemu::exchange
