#include "verbs_shim/exchange/socket_address.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

#include "verbs_shim/abi/control.h"

namespace rocemu::exchange {

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

}  // namespace rocemu::exchange
