// These functions know DPDK's driver for memif, shared memory between two processes:
//
// - A client connects once, when it is started, waits for as long as the kernel has it wait, and
//   gives up when nobody is there.
// - The client's buffers are the ones that both ends use. A frame that takes several of them comes
//   out broken once the ring has been round: the driver leaves flags of the round before (DPDK
//   22.11; repaired by its commit f7a52200d4). So frames must fit into one.
#pragma once

#include <string>
#include <string_view>

namespace rocemu::dpdk_io {

// All of them judge by the device's arguments, as DPDK has them.

bool is_memif(std::string_view arguments);
// Adds buffers for frames of the largest path MTU, unless the arguments say otherwise.
std::string with_memif_defaults(std::string_view arguments);
// The MTU that such buffers hold.
unsigned memif_mtu_bytes(std::string_view arguments);
// So many frames wait in one direction.
unsigned memif_slots(std::string_view arguments);

bool is_memif_client(std::string_view arguments);

// True when somebody answers at the socket these arguments name: a server says hello to whoever
// connects. Waits for 100 ms at most.
bool memif_server_answers(std::string_view arguments);

}  // namespace rocemu::dpdk_io
