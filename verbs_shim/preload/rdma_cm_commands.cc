// The commands of rdma/rdma_user_cm.h, handed on to rocemud. What stands in this process alone is
// brought to it or from it here: where the answer goes, an option's value, another channel's
// descriptor, and waiting for events.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "verbs_shim/preload/nic_connection.h"
#include "verbs_shim/preload/rdma_cm.h"

namespace rocemu::preload {
namespace {

// Where in the command (behind its header) the address of the answer stands; -1 for those without.
int response_offset(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return offsetof(rdma_ucm_create_id, response);
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return offsetof(rdma_ucm_destroy_id, response);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
      return offsetof(rdma_ucm_query, response);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return offsetof(rdma_ucm_init_qp_attr, response);
    case RDMA_USER_CM_CMD_GET_EVENT:
      return offsetof(rdma_ucm_get_event, response);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return offsetof(rdma_ucm_join_ip_mcast, response);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return offsetof(rdma_ucm_join_mcast, response);
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return offsetof(rdma_ucm_migrate_id, response);
    default:
      return -1;
  }
}

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

bool nonblocking(const CmChannel& channel) {
  const int flags = fcntl(channel.fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// Waits until the channel has an event, as its O_NONBLOCK says: 0 or an errno.
int wait_for_event(const CmChannel& channel) {
  pollfd readable = {channel.fd, POLLIN, 0};
  const int ready = poll(&readable, 1, nonblocking(channel) ? 0 : -1);
  if (ready < 0) return errno;
  if (ready == 0) return EAGAIN;
  return (readable.revents & POLLIN) != 0 ? 0 : EIO;
}

int call(CmChannel& channel, rocemu_cm_command& request, rocemu_cm_reply& reply) {
  const bool is_event = request.command == RDMA_USER_CM_CMD_GET_EVENT;
  const bool migrates = request.command == RDMA_USER_CM_CMD_MIGRATE_ID;
  CmLock lock;
  CmChannel* from = migrates ? take_channel(request) : &channel;
  if (from == nullptr) return EINVAL;
  const int error = call_nic(&request.header, &reply.header, sizeof(reply));
  if (error == 0) take_tokens(*from, is_event ? 1 : reply.withdrawn);
  return error;
}

// Another thread may be quicker than this one: then it waits for the next event. When one closes
// the channel meanwhile, this one waits on, as it does in the kernel, whose file lives while it is
// used.
int get_event(CmChannel& channel, rocemu_cm_command& request, rocemu_cm_reply& reply) {
  const uint32_t closed = channel.closed;
  for (;;) {
    int error = wait_for_event(channel);
    if (channel.closed != closed) {
      pause();
      return EINTR;
    }
    if (error == 0) error = call(channel, request, reply);
    if (error != EAGAIN || nonblocking(channel)) return error;
  }
}

int run(CmChannel& channel, rocemu_cm_command& request, rocemu_cm_reply& reply) {
  if (request.command == RDMA_USER_CM_CMD_GET_EVENT) return get_event(channel, request, reply);
  if (request.command == RDMA_USER_CM_CMD_SET_OPTION) {
    if (const int error = take_option(request)) return error;
  }
  return call(channel, request, reply);
}

}  // namespace

ssize_t run_command(CmChannel& channel, const void* data, size_t bytes) {
  rdma_ucm_cmd_hdr header;
  rocemu_cm_command request;
  const auto fail = [](int error) {
    errno = error;
    return -1;
  };
  if (bytes < sizeof(header)) return fail(EINVAL);
  memcpy(&header, data, sizeof(header));
  if (header.in > bytes - sizeof(header)) return fail(EINVAL);
  if (header.in > sizeof(request.in)) return fail(EINVAL);
  memset(&request, 0, sizeof(request));
  request.header.op = ROCEMU_OP_CM_COMMAND;
  request.header.length = sizeof(request);
  request.channel = channel.number;
  request.command = header.cmd;
  request.in_bytes = header.in;
  request.out_bytes = header.out;
  memcpy(request.in, static_cast<const char*>(data) + sizeof(header), header.in);

  uint64_t response = 0;
  const int offset = response_offset(header.cmd);
  if (offset >= 0) {
    if (header.in < static_cast<size_t>(offset) + sizeof(response)) return fail(EINVAL);
    memcpy(&response, request.in + offset, sizeof(response));
  }
  rocemu_cm_reply reply;
  if (const int error = run(channel, request, reply)) return fail(error);
  if (response != 0 && reply.out_bytes <= header.out && reply.out_bytes <= sizeof(reply.out)) {
    memcpy(reinterpret_cast<void*>(response), reply.out, reply.out_bytes);
  }
  return static_cast<ssize_t>(bytes);
}

}  // namespace rocemu::preload
