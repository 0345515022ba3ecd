// The socket by which rocemud listens, below the state directory of a NIC.
#pragma once

namespace rocemu::exchange {

// The functions that make and close descriptors: the preload library has to call the C library's
// own.
struct DescriptorCalls {
  int (*open)(const char*, int, ...);
  int (*socket)(int, int, int);
  int (*close)(int);
};

// Connects to the NIC of `directory`. 0, and `socket`, close-on-exec, is the caller's; otherwise an
// errno.
int connect_to_nic(const char* directory, const DescriptorCalls& calls, int& socket);

}  // namespace rocemu::exchange
