#include "verbs_shim/preload/netlink/nic_model.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "verbs_shim/exchange/message_socket.h"
#include "verbs_shim/exchange/nic_socket.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

netlink::Model NicModel::model() {
  return {
      this,
      [](void* self, uint32_t device_index, rocemu_device_description& reply) {
        rocemu_handle_message request = {};
        request.handle = device_index;
        return static_cast<NicModel*>(self)->ask(&request.header, sizeof(request),
                                                 ROCEMU_OP_DESCRIBE_DEVICE, &reply.header,
                                                 sizeof(reply));
      },
      [](void* self, const rocemu_list_resources& from, rocemu_resources& reply) {
        rocemu_list_resources request = from;
        return static_cast<NicModel*>(self)->ask(&request.header, sizeof(request),
                                                 ROCEMU_OP_LIST_RESOURCES, &reply.header,
                                                 sizeof(reply));
      },
      [](void* self, const rocemu_named_counters_of& of, rocemu_named_counters& reply) {
        rocemu_named_counters_of request = of;
        return static_cast<NicModel*>(self)->ask(&request.header, sizeof(request),
                                                 ROCEMU_OP_NAMED_COUNTERS, &reply.header,
                                                 sizeof(reply));
      },
  };
}

void NicModel::close() { nic_.close(); }

int NicModel::connect() {
  char directory[PATH_MAX];
  const size_t length = sysfs_tree_length() - sizeof("/" ROCEMU_SYSFS_NAME) + 1;
  memcpy(directory, sysfs_tree(), length);
  directory[length] = '\0';
  int fd = -1;
  if (const int error =
          exchange::connect_to_nic(directory, {real().open, real().socket, real().close}, fd))
    return error;
  nic_.hold(fd);
  rocemu_hello hello = {};
  hello.header.op = ROCEMU_OP_HELLO;
  hello.header.length = sizeof(hello);
  hello.magic = ROCEMU_ABI_MAGIC;
  hello.abi_version = ROCEMU_ABI_VERSION;
  hello.device_index = ROCEMU_NO_DEVICE;
  rocemu_hello_reply reply;
  const int error = exchange(&hello.header, &reply.header, sizeof(reply));
  if (error != 0) close();
  return error;
}

// 0, the errno that the reply carries, or EIO when the NIC does not answer as it should.
int NicModel::exchange(rocemu_header* request, rocemu_header* reply, size_t reply_bytes) {
  request->cookie = ++cookie_;
  memset(static_cast<void*>(reply), 0, reply_bytes);
  const auto on_fd = [](int fd) { real().close(fd); };
  if (!exchange::send_message(nic_.number(), request, request->length)) return EIO;
  const exchange::Received message =
      exchange::receive_message(nic_.number(), reply, reply_bytes, 0, on_fd);
  const bool answered =
      message.length_bytes >= static_cast<ssize_t>(sizeof(*reply)) &&
      (message.flags & MSG_TRUNC) == 0 && reply->op == request->op &&
      reply->cookie == request->cookie && reply->status >= 0 &&
      (static_cast<size_t>(message.length_bytes) == reply_bytes || reply->status != 0);
  return answered ? reply->status : EIO;
}

int NicModel::ask(rocemu_header* request, size_t request_bytes, uint32_t op, rocemu_header* reply,
                  size_t reply_bytes) {
  if (!nic_.is_there()) {
    if (const int error = connect()) return error;
  }
  request->op = op;
  request->length = static_cast<uint32_t>(request_bytes);
  const int error = exchange(request, reply, reply_bytes);
  if (error == EIO) close();
  return error;
}

}  // namespace rocemu::preload
