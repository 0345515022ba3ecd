// The commands of rdma/rdma_user_cm.h, handed on to rocemud. Things that stand in this process
// alone are brought to it or from it here: where the answer goes, an option's value, another
// channel's descriptor, and answers that rocemud has given before it is asked.
#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <string.h>

#include "verbs_shim/preload/nic_connection.h"
#include "verbs_shim/preload/rdma_cm.h"
#include "verbs_shim/preload/rdma_cm_answers.h"
#include "verbs_shim/preload/rdma_cm_check.h"

namespace rocemu::preload {
namespace {

// The places in a command, behind its header, of the answer's address and of the id it is about; -1
// for those without.
struct Layout {
  int response;
  int id;
};

#define WITH_BOTH(type) \
  { offsetof(type, response), offsetof(type, id) }
#define WITH_ID(type) \
  { -1, offsetof(type, id) }

Layout layout_of(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return {offsetof(rdma_ucm_create_id, response), -1};
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return {offsetof(rdma_ucm_destroy_id, response), -1};
    case RDMA_USER_CM_CMD_GET_EVENT:
      return {offsetof(rdma_ucm_get_event, response), -1};
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return WITH_BOTH(rdma_ucm_destroy_id);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
      return WITH_BOTH(rdma_ucm_query);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return WITH_BOTH(rdma_ucm_init_qp_attr);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return WITH_BOTH(rdma_ucm_join_ip_mcast);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return WITH_BOTH(rdma_ucm_join_mcast);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return WITH_BOTH(rdma_ucm_migrate_id);
    case RDMA_USER_CM_CMD_BIND_IP:
      return WITH_ID(rdma_ucm_bind_ip);
    case RDMA_USER_CM_CMD_RESOLVE_IP:
      return WITH_ID(rdma_ucm_resolve_ip);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return WITH_ID(rdma_ucm_resolve_route);
    case RDMA_USER_CM_CMD_CONNECT:
      return WITH_ID(rdma_ucm_connect);
    case RDMA_USER_CM_CMD_LISTEN:
      return WITH_ID(rdma_ucm_listen);
    case RDMA_USER_CM_CMD_ACCEPT:
      return WITH_ID(rdma_ucm_accept);
    case RDMA_USER_CM_CMD_REJECT:
      return WITH_ID(rdma_ucm_reject);
    case RDMA_USER_CM_CMD_DISCONNECT:
      return WITH_ID(rdma_ucm_disconnect);
    case RDMA_USER_CM_CMD_SET_OPTION:
      return WITH_ID(rdma_ucm_set_option);
    case RDMA_USER_CM_CMD_NOTIFY:
      return WITH_ID(rdma_ucm_notify);
    case ROCEMU_CM_CMD_WRITE_CM_EVENT:
      return WITH_ID(rocemu_cm_write_event);
    default:
      return {-1, -1};
  }
}

#undef WITH_BOTH
#undef WITH_ID

// The value of SET_OPTION; 0 or an errno.
int take_option(rocemu_cm_command& request) {
  rdma_ucm_set_option option;
  if (request.in_bytes < sizeof(option)) return EINVAL;
  memcpy(&option, request.in, sizeof(option));
  if (option.optlen > sizeof(request.option)) return EINVAL;
  if (option.optval == 0) return EINVAL;
  memcpy(request.option, reinterpret_cast<const void*>(option.optval), option.optlen);
  request.option_bytes = option.optlen;
  return 0;
}

// The channel that MIGRATE_ID takes the id from; null when its descriptor is none.
CmChannel* take_channel(rocemu_cm_command& request) {
  rdma_ucm_migrate_id migrate;
  if (request.in_bytes < sizeof(migrate)) return nullptr;
  memcpy(&migrate, request.in, sizeof(migrate));
  CmChannel* from = find_channel(static_cast<int>(migrate.fd));
  if (from != nullptr) request.other_channel = from->number;
  return from;
}

// Answers from what is known already. False when it has to be asked for.
bool answer_from_memory(const rocemu_cm_command& request, uint32_t id, rocemu_cm_reply& reply) {
  const rocemu_cm_answers* known = find_answers(id);
  if (known == nullptr) return false;
  if (request.command == RDMA_USER_CM_CMD_QUERY_ROUTE) {
    if (request.out_bytes < sizeof(known->route) || (known->given & 1) == 0) return false;
    reply.out_bytes = sizeof(known->route);
    memcpy(reply.out, known->route, sizeof(known->route));
    return true;
  }
  rdma_ucm_init_qp_attr wanted;
  if (request.in_bytes < sizeof(wanted)) return false;
  memcpy(&wanted, request.in, sizeof(wanted));
  const uint32_t state = wanted.qp_state;
  if (state < 1 || state > ROCEMU_CM_SETUPS || (known->given & 1u << state) == 0) return false;
  if (request.out_bytes < sizeof(known->setups[0])) return false;
  reply.out_bytes = sizeof(known->setups[0]);
  memcpy(reply.out, known->setups[state - 1], sizeof(known->setups[0]));
  return true;
}

bool withdraws(uint32_t command) {
  return command == RDMA_USER_CM_CMD_DESTROY_ID || command == RDMA_USER_CM_CMD_LEAVE_MCAST ||
         command == RDMA_USER_CM_CMD_MIGRATE_ID;
}

int ask(CmChannel& channel, rocemu_cm_command& request, rocemu_cm_reply& reply) {
  CmChannel* from = &channel;
  CmLock lock;
  uint32_t id = 0;
  if (const int offset = layout_of(request.command).id; offset >= 0) {
    if (request.in_bytes < static_cast<size_t>(offset) + sizeof(id)) return EINVAL;
    memcpy(&id, request.in + offset, sizeof(id));
    if (request.command == RDMA_USER_CM_CMD_QUERY_ROUTE ||
        request.command == RDMA_USER_CM_CMD_INIT_QP_ATTR) {
      if (answer_from_memory(request, id, reply)) return 0;
    } else {
      forget_answers(id);
    }
  }
  if (request.command == RDMA_USER_CM_CMD_MIGRATE_ID) from = take_channel(request);
  if (from == nullptr) return EINVAL;
  if (!withdraws(request.command)) return call_nic(&request.header, &reply.header, sizeof(reply));
  HeldTokens tokens(*from, lock);
  const int error = call_nic(&request.header, &reply.header, sizeof(reply));
  if (error != 0) return error;
  tokens.drop(reply.withdrawn);
  // An event that was taken meanwhile may have brought answers anew.
  if (request.command == RDMA_USER_CM_CMD_DESTROY_ID) forget_answers(id);
  return 0;
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

// A command as write(2) brings it: its header, and the bytes behind that.
struct Command {
  rdma_ucm_cmd_hdr header;
  const uint8_t* in;

  // Reads the address that the answer goes to: 0 for commands without one. False when it is too
  // short to say.
  bool response(uint64_t& address) const {
    const int offset = layout_of(header.cmd).response;
    address = 0;
    if (offset < 0) return true;
    if (header.in < static_cast<size_t>(offset) + sizeof(address)) return false;
    memcpy(&address, in + offset, sizeof(address));
    return true;
  }
};

int get_event(CmChannel& channel, const Command& command, uint64_t response) {
  // This is found out before the event is taken.
  if (command.header.out < offsetof(rdma_ucm_event_resp, reserved)) return ENOSPC;
  rocemu_cm_event reply;
  static_assert(sizeof(reply.event) == sizeof(rdma_ucm_event_resp));
  if (const int error = next_event(channel, reply)) return error;
  const size_t bytes =
      command.header.out < sizeof(reply.event) ? command.header.out : sizeof(reply.event);
  memcpy(reinterpret_cast<void*>(response), reply.event, bytes);
  return 0;
}

int run(CmChannel& channel, const Command& command, uint64_t response) {
  rocemu_cm_command request = {};
  request.header.op = ROCEMU_OP_CM_COMMAND;
  request.header.length = sizeof(request);
  request.channel = channel.number;
  request.command = command.header.cmd;
  request.in_bytes = command.header.in;
  uint32_t refused = 0;
  const bool listens = command.header.cmd == RDMA_USER_CM_CMD_LISTEN;
  request.out_bytes = listens ? uint32_t{sizeof(refused)} : command.header.out;
  memcpy(request.in, command.in, command.header.in);
  if (command.header.cmd == RDMA_USER_CM_CMD_SET_OPTION) {
    if (const int error = take_option(request)) return error;
  }
  rocemu_cm_reply reply;
  if (const int error = ask(channel, request, reply)) return error;
  if (listens) {
    memcpy(&refused, reply.out, sizeof(refused));
    tell_listening(refused);
    return 0;
  }
  if (reply.out_bytes <= command.header.out && reply.out_bytes <= sizeof(reply.out)) {
    memcpy(reinterpret_cast<void*>(response), reply.out, reply.out_bytes);
  }
  return 0;
}

}  // namespace

ssize_t run_command(CmChannel& channel, const void* data, size_t bytes) {
  Command command;
  if (bytes < sizeof(command.header)) return fail(EINVAL);
  memcpy(&command.header, data, sizeof(command.header));
  command.in = static_cast<const uint8_t*>(data) + sizeof(command.header);
  if (command.header.in > bytes - sizeof(command.header)) return fail(EINVAL);
  if (command.header.in > ROCEMU_CM_IN_MAX) return fail(EINVAL);
  uint64_t response;
  if (!command.response(response)) return fail(EINVAL);
  const int error = command.header.cmd == RDMA_USER_CM_CMD_GET_EVENT
                        ? get_event(channel, command, response)
                        : run(channel, command, response);
  return error == 0 ? static_cast<ssize_t>(bytes) : fail(error);
}

}  // namespace rocemu::preload
