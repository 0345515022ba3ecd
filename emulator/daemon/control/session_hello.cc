// The first request of a connection: it becomes a control connection or the context of a device.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/daemon/control/session.h"
#include "emulator/daemon/rings/doorbells.h"
#include "emulator/daemon/rings/event_writer.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kMinFds = 1;  // the async event pipe
constexpr size_t kMaxFds = 2;  // and /proc/self/mem

uint32_t doorbell_slots(const device::DeviceLimits& limits) {
  const uint32_t rounded_up = (limits.max_qp + 63) / 64 * 64;
  return std::min<uint32_t>(rounded_up, ROCEMU_DOORBELL_SLOTS_MAX);
}

}  // namespace

void Session::hello(const rocemu_hello& message, ReceivedMessage& received) {
  if (message.device_index == ROCEMU_NO_DEVICE) {
    if (received.fd_count != 0) return refuse(EINVAL);
    kind_ = Kind::control;
    return answer_hello(0, {});
  }
  if (message.device_index == ROCEMU_CM_SERVICE) {
    if (received.fd_count != 0) return refuse(EINVAL);
    if (nic_.cm == nullptr) return refuse(ENODEV);
    const UniqueFd mailbox_fd = add_mailbox();
    cm_ = std::make_unique<CmConversation>(*nic_.cm);
    kind_ = Kind::cm;
    const int fds[] = {mailbox_fd.get()};
    return answer_hello(0, fds);
  }
  if (received.fd_count < kMinFds || received.fd_count > kMaxFds) return refuse(EINVAL);
  if (message.device_index >= nic_.devices.size()) return refuse(ENODEV);
  open_device(message, received);
}

void Session::open_device(const rocemu_hello& message, ReceivedMessage& received) {
  device_index_ = message.device_index;
  auto events = EventWriter::open(received.fds[0]);
  if (!events) return refuse(events.error());
  auto memory = dma::AddressSpace::probe(peer().pid, received.fds[1].release(),
                                         message.probe_address, message.probe_value, nic_.dma);
  if (memory == nullptr) return refuse(EPERM);

  Engine& engine = nic_.engine;
  SharedMemory page("rocemu-doorbells", sizeof(rocemu_doorbell_page));
  UniqueFd page_fd = page.take_fd();
  auto doorbells = std::make_unique<Doorbells>(std::move(page), doorbell_slots(config().limits));
  auto wake = std::make_unique<WakeFd>(engine.wake_set());
  UniqueFd mailbox_fd = add_mailbox();

  on_engine(
      [&engine, index = device_index_, memory = std::move(memory), events = std::move(*events),
       doorbells = std::move(doorbells),
       wake = std::move(wake)]() mutable -> device::Result<EngineContext*> {
        device::Hca& hca = engine.hca(index);
        const auto id = hca.open_context(std::move(memory), std::move(events));
        if (!id) return tl::unexpected(id.error());
        return &engine.add_context(
            std::make_unique<EngineContext>(hca, *id, std::move(doorbells), std::move(wake)));
      },
      [this, page_fd = std::move(page_fd),
       mailbox_fd = std::move(mailbox_fd)](device::Result<EngineContext*> context) {
        if (!context) return refuse(context.error());
        context_ = *context;
        kind_ = Kind::context;
        const int fds[] = {page_fd.get(), nic_.engine.engine_page_fd(), context_->wake_fd(),
                           mailbox_fd.get()};
        answer_hello(0, fds);
      });
}

void Session::answer_hello(int status, std::span<const int> fds) {
  rocemu_hello_reply body{};
  body.abi_version = ROCEMU_ABI_VERSION;
  if (context_ != nullptr) {
    body.max_doorbells = doorbell_slots(config().limits);
    body.num_comp_vectors = config().limits.num_comp_vectors;
  }
  body.daemon_pid = static_cast<uint32_t>(::getpid());
  std::strncpy(body.daemon_version, ROCEMU_VERSION, sizeof(body.daemon_version) - 1);
  answer(body, fds, status);
}

}  // namespace rocemu::daemon
