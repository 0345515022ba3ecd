// Memory regions of the HCA: registration, its changes, and its end.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

namespace {

constexpr uint32_t kBasicAccess = transport::kLocalWrite | transport::kRemoteWrite |
                                  transport::kRemoteRead | transport::kRemoteAtomic;
constexpr uint32_t kKnownAccess = kBasicAccess | kWindowBind | kZeroBased | kOnDemand | kHugePages |
                                  kOptionalRange | kFlushGlobal | kFlushPersistent;
constexpr uint32_t kKeptAccess = kBasicAccess | kWindowBind | kZeroBased | kOnDemand | kFlushGlobal;

// A region that peers may write to must be one that the program may write to (ibv_reg_mr(3)).
bool consistent(uint32_t access) {
  const bool changed_from_afar =
      (access & (transport::kRemoteWrite | transport::kRemoteAtomic)) != 0;
  return (access & ~kKnownAccess) == 0 &&
         (!changed_from_afar || (access & transport::kLocalWrite) != 0);
}

// All of the program's memory, whatever will be there (ibv_reg_mr(3), on-demand paging).
bool is_implicit(const MrSpec& spec) {
  return (spec.access & kOnDemand) != 0 && spec.address == 0 && spec.length_bytes == UINT64_MAX;
}

// True when the file's bytes can be the region's: as many, and at the same place within a page,
// the smallest there is, which alignment depends on. On-demand regions follow what the program maps
// there.
bool is_of_file(const MrSpec& spec) {
  constexpr uint64_t kPageBytes = 4096;
  const std::span<std::byte> bytes = spec.file->bytes();
  return spec.kind == MrKind::program_memory && (spec.access & kOnDemand) == 0 &&
         bytes.size() == spec.length_bytes &&
         (reinterpret_cast<uintptr_t>(bytes.data()) - spec.address) % kPageBytes == 0;
}

}  // namespace

int Hca::Impl::check_registration(const MrSpec& spec) const {
  if (!consistent(spec.access)) return EINVAL;
  // No program's memory is known to outlive the power, as that of rxe must (its nvdimm).
  if ((spec.access & kFlushPersistent) != 0) return EOPNOTSUPP;
  if (is_implicit(spec)) return spec.kind == MrKind::program_memory ? 0 : EINVAL;
  if (spec.file != nullptr && !is_of_file(spec)) return EINVAL;
  const bool fits = spec.length_bytes <= config.limits.max_mr_size &&
                    spec.address + spec.length_bytes >= spec.address &&
                    spec.iova + spec.length_bytes >= spec.iova;
  return fits ? 0 : EINVAL;
}

Result<MemoryRegion> Hca::Impl::make_region(Context& context, const MrSpec& spec, Pd& pd, Dm*& dm) {
  MemoryRegion region;
  region.pd = pd.id;
  region.access = (spec.access & kKeptAccess) | kUseAsLkey | kUseAsRkey;
  region.iova = (spec.access & kZeroBased) != 0 ? 0 : spec.iova;
  region.length_bytes = spec.length_bytes;
  region.address = spec.address;
  switch (spec.kind) {
    case MrKind::program_memory:
      region.space = context.memory.get();
      if (spec.file != nullptr) region.mapped = spec.file->bytes().data();
      break;
    case MrKind::device_memory:
      dm = context.dms.find(spec.dm);
      if (dm == nullptr) return tl::unexpected(ENOENT);
      // Device memory has no address that peers could use.
      if ((spec.access & kZeroBased) == 0) return tl::unexpected(EINVAL);
      if (spec.address > dm->memory->bytes().size() ||
          spec.length_bytes > dm->memory->bytes().size() - spec.address)
        return tl::unexpected(EINVAL);
      region.space = dm->space.get();
      region.mapped = dm->memory->bytes().data() + spec.address;
      break;
    case MrKind::null:
      region.access = transport::kLocalWrite | kUseAsLkey;
      region.iova = 0;
      region.length_bytes = UINT64_MAX;
      region.address = 0;
      region.space = null_memory.get();
      break;
  }
  return region;
}

Result<MrKeys> Hca::reg_mr(ContextId id, const MrSpec& spec) {
  Context* context = impl_->find_context(id);
  Pd* pd = find_object(context, &Context::pds, spec.pd);
  if (pd == nullptr) return tl::unexpected(ENOENT);
  if (const int error = impl_->check_registration(spec)) return tl::unexpected(error);
  Dm* dm = nullptr;
  const auto region = impl_->make_region(*context, spec, *pd, dm);
  if (!region) return tl::unexpected(region.error());
  if (!impl_->has_room(context->program, impl_->totals.mrs, impl_->config.limits.max_mr,
                       [](const Context& own) { return own.mrs.size(); }))
    return tl::unexpected(ENOMEM);
  const auto key = impl_->regions.add(*region);
  if (!key) return tl::unexpected(ENOMEM);
  ++pd->users;
  if (dm != nullptr) ++dm->users;
  ++impl_->totals.mrs;
  if (spec.file != nullptr) ++impl_->totals.mapped_mrs;
  const Handle handle =
      context->mrs.insert(std::make_unique<Mr>(Mr{*key, pd, dm, spec.kind, spec.file}));
  return MrKeys{handle, wire::LKey{*key}, wire::RKey{*key}};
}

// The keys stay as they are.
Result<MrKeys> Hca::rereg_mr(ContextId id, Handle handle, uint32_t flags, const MrSpec& spec) {
  Context* context = impl_->find_context(id);
  Mr* mr = find_object(context, &Context::mrs, handle);
  if (mr == nullptr) return tl::unexpected(ENOENT);
  if ((flags & ~uint32_t{kChangeTranslation | kChangePd | kChangeAccess}) != 0)
    return tl::unexpected(EINVAL);
  if (mr->kind != MrKind::program_memory) return tl::unexpected(EOPNOTSUPP);
  MemoryRegion& region = *impl_->regions.find_region(mr->key);
  if (region.windows > 0) return tl::unexpected(EBUSY);
  Pd* pd = (flags & kChangePd) != 0 ? context->pds.find(spec.pd) : mr->pd;
  if (pd == nullptr) return tl::unexpected(ENOENT);

  MrSpec merged;
  merged.access = (flags & kChangeAccess) != 0 ? spec.access : region.access & kKeptAccess;
  const bool moves = (flags & kChangeTranslation) != 0;
  merged.address = moves ? spec.address : region.address;
  merged.length_bytes = moves ? spec.length_bytes : region.length_bytes;
  merged.iova = moves ? spec.iova : region.iova;
  if (!moves && (merged.access & kOnDemand) == 0) merged.file = mr->file;
  if (const int error = impl_->check_registration(merged)) return tl::unexpected(error);
  Dm* no_dm = nullptr;
  auto changed = impl_->make_region(*context, merged, *pd, no_dm);
  if (!changed) return tl::unexpected(changed.error());
  changed->key = region.key;
  changed->generation = region.generation;
  region = *changed;
  if (mr->file != nullptr && merged.file == nullptr) --impl_->totals.mapped_mrs;
  mr->file = merged.file;
  --mr->pd->users;
  ++pd->users;
  mr->pd = pd;
  return MrKeys{handle, wire::LKey{region.key}, wire::RKey{region.key}};
}

void Hca::Impl::destroy_mr(Mr& mr) {
  regions.remove(mr.key);
  --mr.pd->users;
  if (mr.dm != nullptr) --mr.dm->users;
  --totals.mrs;
  if (mr.file != nullptr) --totals.mapped_mrs;
}

int Hca::dereg_mr(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Mr* mr = find_object(context, &Context::mrs, handle);
  if (mr == nullptr && context != nullptr) {
    // One that was imported has the handle that it has there (ibv_import_mr(3)).
    context = impl_->find_context(context->joined);
    mr = find_object(context, &Context::mrs, handle);
  }
  if (mr == nullptr) return ENOENT;
  if (impl_->regions.find_region(mr->key)->windows > 0) return EBUSY;
  impl_->destroy_mr(*mr);
  context->mrs.erase(handle);
  return 0;
}

Result<uint64_t> Hca::check_prefetch(ContextId id, Handle pd_handle, wire::LKey lkey, uint64_t iova,
                                     uint64_t length_bytes, bool for_writing) const {
  Context* context = impl_->find_context(id);
  const Pd* pd = find_object(context, &Context::pds, pd_handle);
  if (pd == nullptr) return tl::unexpected(ENOENT);
  const MemoryRegion* region = impl_->regions.find_region(lkey.value);
  if (region == nullptr || region->space != context->memory.get() ||
      (region->access & kOnDemand) == 0)
    return tl::unexpected(ENOENT);
  if (region->pd != pd->id) return tl::unexpected(EPERM);
  const uint64_t offset = iova - region->iova;
  if (offset > region->length_bytes || length_bytes > region->length_bytes - offset)
    return tl::unexpected(EFAULT);
  if (for_writing && (region->access & transport::kLocalWrite) == 0) return tl::unexpected(EPERM);
  return region->address + offset;
}

}  // namespace rocemu::device
