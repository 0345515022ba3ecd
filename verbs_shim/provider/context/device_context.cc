#include "verbs_shim/provider/context/device_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "verbs_shim/provider/common/complain.h"
#include "verbs_shim/provider/context/ticket.h"

namespace rocemu::provider {
namespace {

constexpr rocemu_async_event kFatal = {0, IBV_EVENT_DEVICE_FATAL, 0};

int connect_to_nic(DeviceState& state) {
  const char* directory = getenv(ROCEMU_ENV_DIR);
  if (directory == nullptr || directory[0] == '\0') {
    complain(ROCEMU_ENV_DIR " is not set: start the program with 'rocemu run' or 'rocemu exec'");
    return ENODEV;
  }
  const int error = state.connection.open(directory);
  if (error == ENOENT || error == ECONNREFUSED) {
    complain("no NIC is running in %s: start one with 'rocemu up'", directory);
    return ENODEV;
  }
  if (error != 0) complain("can't reach the NIC in %s: %s", directory, strerror(error));
  return error;
}

void explain_refusal(int error, const rocemu_hello_reply& reply, uint32_t device_index) {
  switch (error) {
    case EPROTO:
      complain("this provider (" ROCEMU_VERSION
               ") speaks version %u of the protocol, rocemud (%.*s) "
               "version %u: install the same release of both",
               unsigned{ROCEMU_ABI_VERSION}, ROCEMU_NAME_MAX, reply.daemon_version,
               reply.abi_version);
      break;
    case ENODEV:
      complain("rocemud has no device number %u any more: list the devices again", device_index);
      break;
    case EPERM:
      complain(
          "rocemud can't reach this program's memory: run both as the same user, and leave the "
          "program dumpable and /proc mounted");
      break;
    case EIO:
      complain("rocemud ended the connection instead of opening the device: see its log");
      break;
    default:
      complain("rocemud doesn't open the device: %s", strerror(error));
  }
}

// Lets the NIC read and write this process where Yama asks for permission. Without Yama this fails,
// and nothing is lost.
void permit_access(const ControlConnection& connection) {
  const pid_t peer = connection.peer_process();
  if (peer > 0) prctl(PR_SET_PTRACER, static_cast<unsigned long>(peer), 0, 0, 0);
}

int take_pages(DeviceState& state, const rocemu_hello_reply& reply, ReceivedFds& received) {
  if (reply.max_doorbells > ROCEMU_DOORBELL_SLOTS_MAX) return EPROTO;
  int error = state.doorbell_page.map(received.get(0), sizeof(rocemu_doorbell_page),
                                      PROT_READ | PROT_WRITE);
  if (error == 0) {
    error = state.engine_page.map(received.get(1), sizeof(rocemu_engine_page), PROT_READ);
  }
  if (error != 0) return error;
  state.connection.use_mailbox(received.get(3));
  Doorbells& doorbells = state.doorbells;
  doorbells.page = static_cast<rocemu_doorbell_page*>(state.doorbell_page.address);
  doorbells.engine = static_cast<const rocemu_engine_page*>(state.engine_page.address);
  doorbells.slots = reply.max_doorbells;
  doorbells.wake_fd = received.take(2);
  return doorbells.wake_fd < 0 ? EPROTO : 0;
}

int say_hello(DeviceContext& context, uint32_t device_index) {
  DeviceState& state = context.state;
  int async_write_end = -1;
  if (const int error = state.async_events.open(async_write_end); error != 0) return error;
  state.purge.passage.open();
  // libibverbs makes an asynchronous event descriptor of its own unless there is one.
  context.verbs.async_fd = state.async_events.read_end();
  const int memory_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  const int fds[] = {async_write_end, memory_fd};

  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  state.probe = static_cast<uint64_t>(now.tv_nsec) << 32 ^ reinterpret_cast<uintptr_t>(&state);
  rocemu_hello request = {};
  request.magic = ROCEMU_ABI_MAGIC;
  request.abi_version = ROCEMU_ABI_VERSION;
  request.device_index = device_index;
  request.probe_address = reinterpret_cast<uintptr_t>(&state.probe);
  request.probe_value = state.probe;
  rocemu_hello_reply reply;
  ReceivedFds received;
  const int error = state.connection.call(ROCEMU_OP_HELLO, request, reply, &received,
                                          {fds, memory_fd >= 0 ? 2u : 1u});
  close(async_write_end);
  if (memory_fd >= 0) close(memory_fd);
  if (error != 0) {
    explain_refusal(error, reply, device_index);
    return error;
  }
  context.verbs.num_comp_vectors = static_cast<int>(reply.num_comp_vectors);
  return take_pages(state, reply, received);
}

int join(DeviceContext& context, uint32_t device_index) {
  rocemu_context_ticket ticket;
  if (!read_ticket(context.verbs.cmd_fd, ticket) || ticket.device_index != device_index) {
    return EINVAL;
  }
  return join_context(context, ticket);
}

void give_up(DeviceState& state) {
  state.connection.close();
  state.async_events.close_write_end();
  state.purge.passage.close();
  state.doorbell_page.unmap();
  state.engine_page.unmap();
  if (state.doorbells.wake_fd >= 0) close(state.doorbells.wake_fd);
  state.~DeviceState();
}

}  // namespace

int open_context(DeviceContext& context, uint32_t device_index, bool imported) {
  DeviceState& state = *new (&context.state) DeviceState;
  const char* yield = getenv("ROCEMU_POLL_YIELD");
  state.yield_when_idle = yield == nullptr || strcmp(yield, "0") != 0;
  int error = connect_to_nic(state);
  if (error == 0) {
    permit_access(state.connection);
    error = say_hello(context, device_index);
  }
  if (error == 0) {
    struct {
      rocemu_header header;
    } request;
    error = context.call(ROCEMU_OP_QUERY_DEVICE, request, state.limits);
  }
  if (error == 0) error = imported ? join(context, device_index) : take_ticket(context);
  if (error == 0) error = state.channels.open(context);
  if (error != 0) give_up(state);
  return error;
}

void close_context(DeviceContext& context) {
  context.state.channels.close();
  give_up(context.state);
}

bool DeviceContext::look_for_nic() {
  if (!state.connection.lost()) state.connection.look();
  if (!state.connection.lost()) return true;
  report_fatal();
  return false;
}

void DeviceContext::report_fatal() {
  if (state.fatal_reported.exchange(true)) return;
  state.async_events.append(&kFatal, sizeof(kFatal));
}

ssize_t DeviceContext::take_fatal(void* data, size_t bytes) {
  if (bytes < sizeof(kFatal) || state.fatal_reported.exchange(true)) {
    errno = EIO;
    return -1;
  }
  memcpy(data, &kFatal, sizeof(kFatal));
  return sizeof(kFatal);
}

}  // namespace rocemu::provider
