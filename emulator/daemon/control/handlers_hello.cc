// The first request of a connection: it becomes a control connection, the context of a device, or
// one for connection management.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/doorbells.h"
#include "emulator/daemon/rings/event_writer.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon::handlers {
namespace {

uint32_t doorbell_slots(const device::DeviceLimits& limits) {
  const uint32_t rounded_up = (limits.max_qp + 63) / 64 * 64;
  return std::min<uint32_t>(rounded_up, ROCEMU_DOORBELL_SLOTS_MAX);
}

void open_cm(SessionCore& session) {
  if (!session.host().new_cm_program) return session.refuse(ENODEV);
  const UniqueFd mailbox_fd = session.peer().add_mailbox();
  session.become_cm(session.host().new_cm_program(session.peer().pid()));
  const int fds[] = {mailbox_fd.get()};
  answer_hello(session, 0, fds);
}

// The descriptors: the async event pipe, and /proc/self/mem where the program could open it.
void open_device(SessionCore& session, const rocemu_hello& message, ReceivedMessage& received) {
  session.choose_device(message.device_index);
  session.charge_context();
  auto events = session.open_pipe(received.fds[0]);
  if (!events) return session.refuse(events.error());
  auto memory = session.peer().reach_memory(std::move(received.fds[1]), message.probe_address,
                                            message.probe_value);
  if (memory == nullptr) return session.refuse(EPERM);

  std::unique_ptr<device::EventChannel> channel = std::move(*events);
  if (QueueDecorator* const decorator = session.host().decorator)
    channel = decorator->wrap_events(session.device_index(), std::move(channel));

  DeviceEngine& engine = session.host().engine;
  SharedMemory page = session.make_memory("rocemu-doorbells", sizeof(rocemu_doorbell_page));
  UniqueFd page_fd = page.take_fd();
  auto doorbells =
      std::make_unique<Doorbells>(std::move(page), doorbell_slots(session.config().limits));
  auto wake = std::make_unique<WakeFd>(engine.wake_set());
  UniqueFd mailbox_fd = session.peer().add_mailbox();

  session.on_engine(
      [&engine, index = message.device_index, memory = std::move(memory),
       events = std::move(channel), doorbells = std::move(doorbells), wake = std::move(wake),
       program = static_cast<uint64_t>(
           std::max<pid_t>(session.peer().pid(), 0))]() mutable -> device::Result<EngineContext*> {
        device::Hca& hca = engine.hca(index);
        const auto id = hca.open_context(std::move(memory), std::move(events), program);
        if (!id) return tl::unexpected(id.error());
        return &engine.add_context(
            std::make_unique<EngineContext>(hca, *id, std::move(doorbells), std::move(wake)));
      },
      [&session, &engine, page_fd = std::move(page_fd),
       mailbox_fd = std::move(mailbox_fd)](device::Result<EngineContext*> context) {
        if (!context) return session.refuse(context.error());
        session.become_context(**context);
        const int fds[] = {page_fd.get(), engine.engine_page_fd(), (*context)->wake_fd(),
                           mailbox_fd.get()};
        answer_hello(session, 0, fds);
      });
}

}  // namespace

void hello(SessionCore& session, const rocemu_hello& message, ReceivedMessage& received) {
  const bool opens_device =
      message.device_index != ROCEMU_NO_DEVICE && message.device_index != ROCEMU_CM_SERVICE;
  if ((received.fd_count > 0) != opens_device) return session.refuse(EINVAL);
  if (message.device_index == ROCEMU_CM_SERVICE) return open_cm(session);
  if (!opens_device) {
    session.become_control();
    return answer_hello(session, 0);
  }
  if (message.device_index >= session.host().devices.size()) return session.refuse(ENODEV);
  if (session.host().gate == nullptr || session.host().gate->open())
    return open_device(session, message, received);
  const auto kept = std::make_shared<ReceivedMessage>(std::move(received));
  received.fd_count = 0;
  session.through_gate(message.device_index, ROCEMU_OP_HELLO,
                       [&session, message, kept] { open_device(session, message, *kept); });
}

void answer_hello(SessionCore& session, int status, std::span<const int> fds) {
  rocemu_hello_reply body{};
  body.abi_version = ROCEMU_ABI_VERSION;
  if (session.context() != nullptr) {
    body.max_doorbells = doorbell_slots(session.config().limits);
    body.num_comp_vectors = session.config().limits.num_comp_vectors;
  }
  body.daemon_pid = static_cast<uint32_t>(::getpid());
  std::strncpy(body.daemon_version, ROCEMU_VERSION, sizeof(body.daemon_version) - 1);
  session.answer(body, fds, status);
}

}  // namespace rocemu::daemon::handlers
