#include "verbs_shim/provider/context/channel.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <unistd.h>

#include "verbs_shim/abi/watch.h"
#include "verbs_shim/provider/common/complain.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/context/gid_query.h"

namespace rocemu::provider {
namespace {

struct Preload {
  decltype(&rocemu_preload_watch_fd_v4) watch_fd;
  decltype(&rocemu_preload_unwatch_fd_v4) unwatch_fd;
};

bool find_preload(Preload& preload) {
  preload.watch_fd =
      reinterpret_cast<decltype(preload.watch_fd)>(dlsym(RTLD_DEFAULT, ROCEMU_PRELOAD_WATCH_FD));
  preload.unwatch_fd = reinterpret_cast<decltype(preload.unwatch_fd)>(
      dlsym(RTLD_DEFAULT, ROCEMU_PRELOAD_UNWATCH_FD));
  return preload.watch_fd != nullptr && preload.unwatch_fd != nullptr;
}

Preload preload;

// The checker knows a channel by its descriptor.
void* as_handle(int fd) { return reinterpret_cast<void*>(static_cast<uintptr_t>(fd)); }

void tell_made(DeviceContext& context, int fd) {
  const rocemu_check_call at = {"ibv_create_comp_channel", __builtin_return_address(0),
                                __builtin_frame_address(0)};
  context.state.checks->made(&at, ROCEMU_CHECK_CHANNEL, &context.verbs, as_handle(fd), nullptr,
                             static_cast<uint32_t>(fd));
}

void tell_gone(const Channel& channel) {
  const rocemu_check_call at = {"ibv_destroy_comp_channel", __builtin_return_address(0),
                                __builtin_frame_address(0)};
  const rocemu_check_hooks& checks = *channel.context->state.checks;
  void* const handle = as_handle(channel.events.read_end());
  checks.going(&at, ROCEMU_CHECK_CHANNEL, handle);
  checks.gone(&at, ROCEMU_CHECK_CHANNEL, handle, 0);
}

// A read(2) that finds nothing waits, unless the program has asked for no waits.
bool would_wait(int fd) {
  pollfd wanted = {fd, POLLIN, 0};
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0 && ::poll(&wanted, 1, 0) == 0;
}

struct CreateChannelCommand {
  ib_uverbs_cmd_hdr header;
  ib_uverbs_create_comp_channel body;
};

// The only descriptor writes that libibverbs makes behind a provider's back.
bool is_create_channel(const void* data, size_t bytes, CreateChannelCommand& command) {
  if (bytes != sizeof(command)) return false;
  memcpy(&command, data, sizeof(command));
  return command.header.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL;
}

}  // namespace

int ChannelList::open(DeviceContext& context) {
  static constexpr rocemu_fd_watch kCommands = {&ChannelList::on_command, nullptr,
                                                &ChannelList::on_ioctl, nullptr, nullptr};
  static constexpr rocemu_fd_watch kAsyncEvents = {nullptr, nullptr, nullptr,
                                                   &ChannelList::on_last_event, nullptr};
  context_ = &context;
  if (!find_preload(preload)) {
    complain(
        "librocemu-preload.so is not loaded, or is of another release: start the program with "
        "'rocemu run' or 'rocemu exec'");
    return ENOSYS;
  }
  const int error = preload.watch_fd(context.verbs.cmd_fd, &kCommands, this);
  if (error != 0) return error;
  return preload.watch_fd(context.state.async_events.read_end(), &kAsyncEvents, this);
}

void ChannelList::close() {
  Lock lock(mutex_);
  preload.unwatch_fd(context_->state.async_events.read_end());
  while (channels_.first() != nullptr) {
    Channel* channel = channels_.first()->object;
    channels_.remove(channel->links);
    if (!channel->closed) preload.unwatch_fd(channel->events.read_end());
    free(channel);
  }
}

ssize_t ChannelList::on_command(void* list, const void* data, size_t bytes) {
  CreateChannelCommand command;
  if (!is_create_channel(data, bytes, command)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const int fd = static_cast<ChannelList*>(list)->create();
  if (fd < 0) return -1;
  ib_uverbs_create_comp_channel_resp response = {};
  response.fd = static_cast<uint32_t>(fd);
  memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(command.body.response)), &response,
         sizeof(response));
  return static_cast<ssize_t>(bytes);
}

// An imported context is asked for its asynchronous event descriptor, which it has, and every one
// for its GIDs; the rest is for kernels.
int ChannelList::on_ioctl(void* list, unsigned long request, void* argument) {
  auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
  if (request == RDMA_VERBS_IOCTL && is_gid_query(*header)) {
    const DeviceContext& context = *static_cast<ChannelList*>(list)->context_;
    const int error = answer_gid_query(*context.verbs.device, *header);
    if (error == 0) return 0;
    errno = error;
    return -1;
  }
  if (request != RDMA_VERBS_IOCTL || header->object_id != UVERBS_OBJECT_ASYNC_EVENT ||
      header->method_id != UVERBS_METHOD_ASYNC_EVENT_ALLOC || header->num_attrs != 1) {
    errno = ENOTTY;
    return -1;
  }
  header->attrs[0].data_s64 =
      static_cast<ChannelList*>(list)->context_->state.async_events.read_end();
  header->attrs[0].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

// The NIC's end was the pipe's.
ssize_t ChannelList::on_last_event(void* list, void* data, size_t bytes) {
  return static_cast<ChannelList*>(list)->context_->take_fatal(data, bytes);
}

int ChannelList::create() {
  static constexpr rocemu_fd_watch kChannel = {nullptr, &ChannelList::on_close, nullptr,
                                               &ChannelList::after_last_event, nullptr};
  static constexpr rocemu_fd_watch kCheckedChannel = {nullptr, &ChannelList::on_close, nullptr,
                                                      &ChannelList::after_last_event,
                                                      &ChannelList::before_read};
  auto* channel = new_object<Channel>();
  int error = channel == nullptr ? ENOMEM : channel->events.open(channel->write_end);
  if (error != 0) {
    if (channel != nullptr) delete_object(channel);
    errno = error;
    return -1;
  }
  const int fd = channel->events.read_end();
  channel->context = context_;
  {
    Lock lock(mutex_);
    channels_.add(*channel, channel->links);
  }
  const bool checked = context_->state.checks != nullptr;
  error = preload.watch_fd(fd, checked ? &kCheckedChannel : &kChannel, channel);
  if (error == 0) {
    if (checked) tell_made(*context_, fd);
    return fd;
  }
  ::close(fd);
  remove(channel);
  errno = error;
  return -1;
}

// The NIC's end was the pipe's: read(2) fails as it does where the kernel has closed the channel of
// a device that is gone. ibv_get_cq_event(3) sets no errno of its own, and rsockets take whatever
// errno is left from the call before for a reason to try again.
ssize_t ChannelList::after_last_event(void*, void*, size_t) {
  errno = EIO;
  return -1;
}

void ChannelList::before_read(void* context, int fd) {
  const auto* channel = static_cast<const Channel*>(context);
  const int saved = errno;
  if (would_wait(fd)) {
    const rocemu_check_call at = {"ibv_get_cq_event", __builtin_return_address(0),
                                  __builtin_frame_address(0)};
    channel->context->state.checks->waiting(&at, fd);
  }
  errno = saved;
}

Channel* ChannelList::acquire(int fd) {
  Lock lock(mutex_);
  for (auto* links = channels_.first(); links != nullptr; links = links->next) {
    Channel* channel = links->object;
    if (channel->closed || channel->events.read_end() != fd) continue;
    ++channel->users;
    return channel;
  }
  return nullptr;
}

int ChannelList::create_cq(Channel& channel, rocemu_create_cq& request,
                           rocemu_create_cq_reply& reply, ReceivedFds& received) {
  mutex_.lock();
  const bool is_first = channel.write_end >= 0;
  if (!is_first) mutex_.unlock();
  SentFds pipe;
  if (is_first) pipe = {&channel.write_end, 1};
  request.channel = is_first ? 0 : channel.handle;
  const int error = context_->call(ROCEMU_OP_CREATE_CQ, request, reply, &received, pipe);
  if (!is_first) return error;
  int told = -1;
  if (error == 0) {
    channel.handle = reply.channel;
    told = channel.write_end;
    channel.write_end = -1;
  }
  mutex_.unlock();
  if (told >= 0) ::close(told);
  return error;
}

void ChannelList::release(Channel* channel) {
  mutex_.lock();
  const bool last = --channel->users == 0 && channel->closed;
  mutex_.unlock();
  if (last) remove(channel);
}

void ChannelList::on_close(void* context) {
  auto* channel = static_cast<Channel*>(context);
  if (channel->context->state.checks != nullptr) tell_gone(*channel);
  ChannelList& list = channel->context->state.channels;
  list.mutex_.lock();
  channel->closed = true;
  const bool unused = channel->users == 0;
  list.mutex_.unlock();
  if (unused) list.remove(channel);
}

void ChannelList::remove(Channel* channel) {
  {
    Lock lock(mutex_);
    channels_.remove(channel->links);
  }
  if (channel->write_end < 0) {
    rocemu_handle_message request = {};
    request.handle = channel->handle;
    rocemu_handle_message reply;
    context_->call(ROCEMU_OP_DESTROY_CHANNEL, request, reply);
  }
  free(channel);
}

void ChannelList::free(Channel* channel) {
  if (channel->write_end >= 0) ::close(channel->write_end);
  channel->events.close_write_end();
  delete_object(channel);
}

}  // namespace rocemu::provider
