// Imports of the HCA: one context uses objects of another, whose program handed on its token.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

void Hca::set_token(ContextId id, const ContextToken& token) {
  Context* context = impl_->find_context(id);
  if (context != nullptr && !context->token) context->token = token;
}

std::optional<ContextToken> Hca::token(ContextId id) const {
  const Context* context = impl_->find_context(id);
  return context == nullptr ? std::nullopt : context->token;
}

int Hca::join_context(ContextId id, const ContextToken& token) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return ENOENT;
  if (context->joined != 0) return EALREADY;
  for (const auto& [other_id, other] : impl_->contexts) {
    if (other->token != token) continue;
    context->joined = other_id;
    return 0;
  }
  return ENOENT;
}

Result<Handle> Hca::import_pd(ContextId id, Handle there) {
  Context* context = impl_->find_context(id);
  const Context* joined = context == nullptr ? nullptr : impl_->find_context(context->joined);
  const Pd* pd = find_object(joined, &Context::pds, there);
  if (pd == nullptr) return tl::unexpected(ENOENT);
  if (!impl_->has_room_for_pd(*context)) return tl::unexpected(ENOMEM);
  ++impl_->totals.pds;
  return context->pds.insert(std::make_unique<Pd>(Pd{pd->id, 0}));
}

Result<ImportedMr> Hca::import_mr(ContextId id, Handle pd_handle, Handle there) const {
  const Context* context = impl_->find_context(id);
  const Context* joined = context == nullptr ? nullptr : impl_->find_context(context->joined);
  const Pd* pd = find_object(context, &Context::pds, pd_handle);
  const Mr* mr = find_object(joined, &Context::mrs, there);
  if (pd == nullptr || mr == nullptr) return tl::unexpected(ENOENT);
  if (mr->pd->id != pd->id) return tl::unexpected(EINVAL);
  const MemoryRegion* region = impl_->regions.find_region(mr->key);
  return ImportedMr{wire::LKey{mr->key}, wire::RKey{mr->key}, region->length_bytes};
}

Result<ImportedDm> Hca::import_dm(ContextId id, Handle there) {
  Context* context = impl_->find_context(id);
  const Context* joined = context == nullptr ? nullptr : impl_->find_context(context->joined);
  const Dm* dm = find_object(joined, &Context::dms, there);
  if (dm == nullptr) return tl::unexpected(ENOENT);
  if (context->dms.size() >= kMaxImportedDms) return tl::unexpected(ENOMEM);
  auto imported = std::make_unique<Dm>();
  imported->memory = dm->memory;
  imported->space = dm->space;
  ImportedDm result{0, dm->memory->bytes().size(), dm->memory->descriptor()};
  result.dm = context->dms.insert(std::move(imported));
  return result;
}

}  // namespace rocemu::device
