// Where rocemud listens, below the state directory of a NIC.
#pragma once

#include <sys/un.h>

namespace rocemu::exchange {

// `directory_fd` is an open descriptor of `directory`, by which a path too long for sun_path is
// reached. False when even that does not fit.
bool socket_address(const char* directory, int directory_fd, sockaddr_un& address);

}  // namespace rocemu::exchange
