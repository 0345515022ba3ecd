// What a context asks for about memory beyond plain regions, and about the size of its CQs:
// verbs_shim/abi/memory.h.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/time.h"
#include "emulator/daemon/control/session.h"
#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/daemon/view/device_description.h"

namespace rocemu::daemon {

namespace {

// A memfd, of which the program gets a part of a page's worth more than it asked for.
class SharedDeviceMemory final : public device::DeviceMemory {
 public:
  SharedDeviceMemory(SharedMemory memory, size_t length_bytes)
      : memory_(std::move(memory)), length_bytes_(length_bytes) {}
  std::span<std::byte> bytes() noexcept override { return {memory_.data(), length_bytes_}; }
  int descriptor() const noexcept override { return memory_.fd(); }

 private:
  SharedMemory memory_;
  size_t length_bytes_;
};

constexpr uint32_t kLogPage = 12;

// Regions of one program that are mapped here, of dma::MappedFile::kMaxMappings.
constexpr size_t kMaxFiles = 4096;

}  // namespace

void Session::query_device_ex() { answer(describe_device_ex(config())); }

void Session::answer_keys(const device::Result<device::MrKeys>& keys) {
  if (!keys) return refuse(keys.error());
  rocemu_reg_mr_reply body{};
  body.mr = keys->mr;
  body.lkey = keys->lkey.value;
  body.rkey = keys->rkey.value;
  answer(body);
}

void Session::register_region(const device::MrSpec& spec) {
  on_context([spec](EngineContext& context) { return context.hca().reg_mr(context.id(), spec); },
             [this](const device::Result<device::MrKeys>& keys) { answer_keys(keys); });
}

void Session::reg_file_mr(const rocemu_reg_file_mr& message, const ReceivedMessage& received) {
  struct stat file;
  const int fd = received.fds[0].get();
  if (nic_.dma || files_.size() >= kMaxFiles || ::fstat(fd, &file) != 0 ||
      file.st_dev != message.file_device || file.st_ino != message.file_inode)
    return refuse(EINVAL);
  device::MrSpec spec = to_mr_spec(message);
  spec.file = dma::MappedFile::map(fd, message.file_offset_bytes, message.length_bytes);
  if (spec.file == nullptr) return refuse(EINVAL);
  on_context([spec](EngineContext& context) { return context.hca().reg_mr(context.id(), spec); },
             [this, file = spec.file](const device::Result<device::MrKeys>& keys) {
               if (keys) files_.emplace(keys->mr, file);
               answer_keys(keys);
             });
}

void Session::rereg_mr(const rocemu_rereg_mr& message) {
  on_context(
      [mr = message.mr, flags = message.flags, spec = to_mr_spec(message)](EngineContext& context) {
        return context.hca().rereg_mr(context.id(), mr, flags, spec);
      },
      [this, mr = message.mr](const device::Result<device::MrKeys>& keys) {
        const auto file = files_.find(mr);
        // The region is reached in another way now.
        if (file != files_.end() && file->second.use_count() == 1) files_.erase(file);
        answer_keys(keys);
      });
}

void Session::alloc_mw(const rocemu_alloc_mw& message) {
  on_context([pd = message.pd, type = message.type](
                 EngineContext& context) { return context.hca().alloc_mw(context.id(), pd, type); },
             [this](const device::Result<device::MrKeys>& keys) { answer_keys(keys); });
}

void Session::dealloc_mw(uint32_t mw) {
  on_context([mw](EngineContext& context) { return context.hca().dealloc_mw(context.id(), mw); },
             [this, mw](int error) { answer_outcome(error, mw); });
}

void Session::alloc_null_mr(uint32_t pd) {
  device::MrSpec spec;
  spec.pd = pd;
  spec.kind = device::MrKind::null;
  register_region(spec);
}

void Session::reg_dm_mr(const rocemu_reg_dm_mr& message) { register_region(to_mr_spec(message)); }

void Session::alloc_dm(const rocemu_alloc_dm& message) {
  const int error = device::check_dm(config().limits, message.length_bytes);
  if (error != 0 || message.log_align > kLogPage) return refuse(EINVAL);
  SharedMemory memory("rocemu-dm", message.length_bytes);
  rocemu_alloc_dm_reply body{};
  body.memory_bytes = memory.size_bytes();
  UniqueFd fd(::fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return refuse(errno);
  auto shared = std::make_unique<SharedDeviceMemory>(std::move(memory), message.length_bytes);
  on_context(
      [shared = std::move(shared)](EngineContext& context) mutable {
        return context.hca().alloc_dm(context.id(), std::move(shared));
      },
      [this, body, fd = std::move(fd)](device::Result<device::Handle> dm) mutable {
        if (!dm) return refuse(dm.error());
        body.dm = *dm;
        answer(body, std::array{fd.get()});
      });
}

void Session::free_dm(uint32_t dm) {
  on_context([dm](EngineContext& context) { return context.hca().free_dm(context.id(), dm); },
             [this, dm](int error) { answer_outcome(error, dm); });
}

void Session::check_prefetch(const rocemu_check_prefetch& message) {
  on_context(
      [message](EngineContext& context) {
        return context.hca().check_prefetch(context.id(), message.pd, wire::LKey{message.lkey},
                                            message.iova, message.length_bytes,
                                            message.for_writing != 0);
      },
      [this](const device::Result<uint64_t>& address) {
        if (!address) return refuse(address.error());
        rocemu_check_prefetch_reply body{};
        body.address = *address;
        answer(body);
      });
}

void Session::resize_cq(const rocemu_resize_cq& message) {
  if (message.cqe == 0 || message.cqe > config().limits.max_cqe) return refuse(EINVAL);
  const uint32_t entries = cq_entries(message.cqe);
  SharedMemory memory("rocemu-cq", cq_memory_bytes(entries));
  rocemu_create_cq_reply body{};
  body.cq = message.cq;
  body.entries = entries;
  body.memory_bytes = memory.size_bytes();
  UniqueFd fd = memory.take_fd();
  auto ring = std::make_unique<SharedCompletionRing>(std::move(memory), entries,
                                                     nic_.engine.completion_host());
  on_context(
      [cq = message.cq, ring = std::move(ring),
       &clock = nic_.engine.clock()](EngineContext& context) mutable {
        return context.hca().resize_cq(context.id(), cq, clock.now_ns(), std::move(ring));
      },
      [this, body, fd = std::move(fd)](int error) mutable {
        if (error != 0) return refuse(error);
        answer(body, std::array{fd.get()});
      });
}

void Session::moderate_cq(const rocemu_moderate_cq& message) {
  const device::CqModeration moderation{message.count, TimeNs{message.period_us} * 1000};
  on_context(
      [cq = message.cq, moderation](EngineContext& context) {
        return context.hca().moderate_cq(context.id(), cq, moderation);
      },
      [this, cq = message.cq](int error) { answer_outcome(error, cq); });
}

}  // namespace rocemu::daemon
