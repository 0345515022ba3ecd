// Address handles of the HCA: resolved once, named by work requests.
#include <cerrno>

#include "emulator/device/attributes/path.h"
#include "emulator/device/hca_impl.h"

namespace rocemu::device {

Result<Handle> Hca::create_ah(ContextId id, Handle pd_handle, const AhAttr& attr) {
  Context* context = impl_->find_context(id);
  Pd* pd = find_object(context, &Context::pds, pd_handle);
  if (pd == nullptr) return tl::unexpected(ENOENT);
  if (attr.port_num != 1) return tl::unexpected(EINVAL);
  if (!impl_->has_room(context->program, impl_->totals.ahs, impl_->config.limits.max_ah,
                       [](const Context& own) { return own.addresses.handles.size(); }))
    return tl::unexpected(ENOMEM);
  // QPs that are not known yet: the flow label alone decides the UDP source port.
  const auto path = make_path(impl_->config.port, attr, {}, {}, impl_->resolver);
  if (!path) return tl::unexpected(path.error());
  ++pd->users;
  ++impl_->totals.ahs;
  return context->addresses.handles.insert(std::make_unique<Ah>(Ah{pd, pd->id, *path}));
}

int Hca::destroy_ah(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Ah* ah = context == nullptr ? nullptr : context->addresses.handles.find(handle);
  if (ah == nullptr) return ENOENT;
  --ah->pd->users;
  --impl_->totals.ahs;
  context->addresses.handles.erase(handle);
  return 0;
}

}  // namespace rocemu::device
