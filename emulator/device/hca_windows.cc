// Memory windows and device memory of the HCA. Windows are bound by work requests: see
// memory_regions.h.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

Result<MrKeys> Hca::alloc_mw(ContextId id, Handle pd_handle, uint32_t type) {
  Context* context = impl_->find_context(id);
  Pd* pd = find_object(context, &Context::pds, pd_handle);
  const auto window_type = static_cast<WindowType>(type);
  if (pd == nullptr) return tl::unexpected(ENOENT);
  if (type > static_cast<uint32_t>(WindowType::type_2) || window_type == WindowType::none)
    return tl::unexpected(EINVAL);
  if (!impl_->has_room(context->program, impl_->totals.mws, impl_->config.limits.max_mw,
                       [](const Context& own) { return own.mws.size(); }))
    return tl::unexpected(ENOMEM);
  const auto key = impl_->regions.add_window(pd->id, window_type);
  if (!key) return tl::unexpected(ENOMEM);
  ++pd->users;
  ++impl_->totals.mws;
  const Handle handle = context->mws.insert(std::make_unique<Mw>(Mw{*key, pd}));
  return MrKeys{handle, wire::LKey{}, wire::RKey{*key}};
}

void Hca::Impl::destroy_mw(Mw& mw) {
  regions.remove(mw.key);
  --mw.pd->users;
  --totals.mws;
}

int Hca::dealloc_mw(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Mw* mw = find_object(context, &Context::mws, handle);
  if (mw == nullptr) return ENOENT;
  impl_->destroy_mw(*mw);
  context->mws.erase(handle);
  return 0;
}

int check_dm(const DeviceLimits& limits, uint64_t length_bytes) {
  return length_bytes > 0 && length_bytes <= limits.max_dm_size ? 0 : EINVAL;
}

Result<Handle> Hca::alloc_dm(ContextId id, std::unique_ptr<DeviceMemory> memory) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  const uint64_t bytes = memory->bytes().size();
  if (const int error = check_dm(impl_->config.limits, bytes)) return tl::unexpected(error);
  if (bytes > impl_->config.limits.max_dm_size - impl_->totals.dm_bytes)
    return tl::unexpected(ENOMEM);
  auto dm = std::make_unique<Dm>();
  dm->space = dma::AddressSpace::local(memory->bytes(), 0);
  dm->memory = std::move(memory);
  impl_->totals.dm_bytes += bytes;
  return context->dms.insert(std::move(dm));
}

// The memory is there until the last who has it, be it by import, gives it up.
void Hca::Impl::destroy_dm(Dm& dm) {
  if (dm.memory.use_count() == 1) totals.dm_bytes -= dm.memory->bytes().size();
}

int Hca::free_dm(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Dm* dm = find_object(context, &Context::dms, handle);
  if (dm == nullptr) return ENOENT;
  if (dm->users > 0) return EBUSY;
  impl_->destroy_dm(*dm);
  context->dms.erase(handle);
  return 0;
}

}  // namespace rocemu::device
