// Requests about protection domains and memory: regions, windows, device memory.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "emulator/daemon/control/conversions.h"
#include "emulator/daemon/control/handlers.h"
#include "emulator/daemon/rings/shared_memory.h"

namespace rocemu::daemon::handlers {
namespace {

// A memfd, of which the program gets a part of a page's worth more than it asked for.
class SharedDeviceMemory final : public device::DeviceMemory {
 public:
  // `charge` is for the descriptor, which stays open.
  SharedDeviceMemory(SharedMemory memory, size_t length_bytes, ProgramShare::Charge charge)
      : memory_(std::move(memory)), length_bytes_(length_bytes), charge_(std::move(charge)) {}
  std::span<std::byte> bytes() noexcept override { return {memory_.data(), length_bytes_}; }
  int descriptor() const noexcept override { return memory_.fd(); }

 private:
  SharedMemory memory_;
  size_t length_bytes_;
  ProgramShare::Charge charge_;
};

constexpr uint32_t kLogPage = 12;

void answer_keys(SessionCore& session, const device::MrKeys& keys) {
  rocemu_reg_mr_reply body{};
  body.mr = keys.mr;
  body.lkey = keys.lkey.value;
  body.rkey = keys.rkey.value;
  session.answer(body);
}

void register_region(SessionCore& session, const device::MrSpec& spec) {
  session.on_context(
      [spec](EngineContext& context) { return context.hca().reg_mr(context.id(), spec); },
      [&session](const device::MrKeys& keys) { answer_keys(session, keys); });
}

}  // namespace

void alloc_pd(SessionCore& session, uint32_t) {
  session.on_context([](EngineContext& context) { return context.hca().alloc_pd(context.id()); },
                     [&session](device::Handle pd) { session.answer_handle(pd); });
}

void reg_mr(SessionCore& session, const rocemu_reg_mr& message) {
  register_region(session, to_mr_spec(message));
}

void reg_file_mr(SessionCore& session, const rocemu_reg_file_mr& message,
                 ReceivedMessage& received) {
  struct stat file;
  const int fd = received.fds[0].get();
  if (session.host().dma || !dma::MappedFile::is_in_memory(fd) || ::fstat(fd, &file) != 0 ||
      file.st_dev != message.file_device || file.st_ino != message.file_inode)
    return session.refuse(EINVAL);
  device::MrSpec spec = to_mr_spec(message);
  struct ChargedFile {
    ProgramShare::Charge charge;
    std::shared_ptr<const dma::MappedFile> file;
  };
  const auto charged = std::make_shared<ChargedFile>();
  charged->charge = session.charge_mapped_file();
  charged->file = dma::MappedFile::map(fd, message.file_offset_bytes, message.length_bytes);
  if (charged->file == nullptr) return session.refuse(EINVAL);
  spec.file = {charged, charged->file.get()};
  received.fds[0].reset();
  register_region(session, spec);
}

void alloc_null_mr(SessionCore& session, uint32_t pd) {
  device::MrSpec spec;
  spec.pd = pd;
  spec.kind = device::MrKind::null;
  register_region(session, spec);
}

void reg_dm_mr(SessionCore& session, const rocemu_reg_dm_mr& message) {
  register_region(session, to_mr_spec(message));
}

void rereg_mr(SessionCore& session, const rocemu_rereg_mr& message) {
  session.on_context(
      [mr = message.mr, flags = message.flags, spec = to_mr_spec(message)](EngineContext& context) {
        return context.hca().rereg_mr(context.id(), mr, flags, spec);
      },
      [&session](const device::MrKeys& keys) { answer_keys(session, keys); });
}

void dereg_mr(SessionCore& session, uint32_t mr) {
  session.on_context(
      [mr](EngineContext& context) { return context.hca().dereg_mr(context.id(), mr); },
      [&session, mr] { session.answer_handle(mr); });
}

void check_prefetch(SessionCore& session, const rocemu_check_prefetch& message) {
  session.on_context(
      [message](EngineContext& context) {
        return context.hca().check_prefetch(context.id(), message.pd, wire::LKey{message.lkey},
                                            message.iova, message.length_bytes,
                                            message.for_writing != 0);
      },
      [&session](uint64_t address) {
        rocemu_check_prefetch_reply body{};
        body.address = address;
        session.answer(body);
      });
}

void alloc_mw(SessionCore& session, const rocemu_alloc_mw& message) {
  session.on_context(
      [pd = message.pd, type = message.type](EngineContext& context) {
        return context.hca().alloc_mw(context.id(), pd, type);
      },
      [&session](const device::MrKeys& keys) { answer_keys(session, keys); });
}

void alloc_dm(SessionCore& session, const rocemu_alloc_dm& message) {
  const int error = device::check_dm(session.config().limits, message.length_bytes);
  if (error != 0 || message.log_align > kLogPage) return session.refuse(EINVAL);
  ProgramShare::Charge charge = session.charge_descriptors(1);
  SharedMemory memory = session.make_memory("rocemu-dm", message.length_bytes);
  rocemu_alloc_dm_reply body{};
  body.memory_bytes = memory.size_bytes();
  UniqueFd fd(::fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return session.refuse(errno);
  auto shared = std::make_unique<SharedDeviceMemory>(std::move(memory), message.length_bytes,
                                                     std::move(charge));
  session.on_context(
      [shared = std::move(shared)](EngineContext& context) mutable {
        return context.hca().alloc_dm(context.id(), std::move(shared));
      },
      [&session, body, fd = std::move(fd)](device::Handle dm) mutable {
        body.dm = dm;
        session.answer(body, std::array{fd.get()});
      });
}

}  // namespace rocemu::daemon::handlers
