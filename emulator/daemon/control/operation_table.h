// The operations of the control protocol (verbs_shim/abi), one row each: number, message, kind of
// connection, descriptors, what has to be 0, handler. What a request needs beside its row is its
// message in verbs_shim/abi and its handler (handlers.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tl/expected.hpp>

#include "emulator/daemon/control/connection/received_message.h"

namespace rocemu::daemon {

class SessionCore;

enum class ConnectionKind : uint8_t {
  fresh,    // no HELLO has been answered yet
  control,  // looks at the NIC and changes it
  context,  // an opened device
  cm,       // connection management
};

struct Operation {
  uint32_t number = 0;  // enum rocemu_op and its like
  ConnectionKind connection = ConnectionKind::fresh;
  uint32_t message_bytes = 0;  // exactly; of HELLO see check_request()
  uint8_t min_fds = 0;         // descriptors that come with the message
  uint8_t max_fds = 0;
  // True when a reserved field is set, or a field has a value that is reserved.
  bool (*reserved_set)(std::span<const std::byte> message) = nullptr;
  void (*handle)(SessionCore& session, ReceivedMessage& message) = nullptr;
};

std::span<const Operation> operations();

enum class Malformed {
  too_short,     // for a header
  wrong_length,  // for its operation, or other than its header says
  unknown_op,
};
const char* to_string(Malformed why);

struct Request {
  rocemu_header header;
  const Operation& operation;
  // 0, or what the request is refused with: EINVAL for a reserved field that is set, EPROTO for a
  // HELLO of another ABI, of which only magic and version are there for certain.
  int error = 0;
};

// Checks the form of a message from a connection of that kind. A malformed one is answered by
// closing the connection: the two sides no longer understand each other. Connections for connection
// management have operations of their own, and each side's are unknown to the other.
tl::expected<Request, Malformed> check_request(std::span<const std::byte> bytes,
                                               ConnectionKind connection);

}  // namespace rocemu::daemon
