// XRC domains of the HCA, and XRC_RECV QPs that several contexts have opened.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

Result<Handle> Hca::open_xrcd(ContextId id, const XrcdSpec& spec) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  std::shared_ptr<Xrcd> domain = impl_->xrc_domains.find(spec.file);
  if (domain != nullptr && spec.exclusive) return tl::unexpected(EINVAL);
  if (domain == nullptr && !spec.create) return tl::unexpected(spec.file ? EAGAIN : EINVAL);
  if (!impl_->has_room(context->program, impl_->totals.xrcds, impl_->config.limits.max_xrcd,
                       [](const Context& own) { return own.xrcds.size(); }))
    return tl::unexpected(ENOMEM);
  if (domain == nullptr) domain = impl_->xrc_domains.make(spec);
  ++impl_->totals.xrcds;
  return context->xrcds.insert(std::make_unique<OpenXrcd>(OpenXrcd{std::move(domain), 0}));
}

int Hca::close_xrcd(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  const OpenXrcd* xrcd = find_object(context, &Context::xrcds, handle);
  if (xrcd == nullptr) return ENOENT;
  if (xrcd->users > 0) return EBUSY;
  context->xrcds.erase(handle);
  --impl_->totals.xrcds;
  return 0;
}

Result<CreatedQp> Hca::open_qp(ContextId id, Handle xrcd_handle, wire::Qpn qpn,
                               uint64_t user_pointer) {
  Context* context = impl_->find_context(id);
  OpenXrcd* xrcd = find_object(context, &Context::xrcds, xrcd_handle);
  const auto found = impl_->qps_by_number.find(qpn.value);
  if (xrcd == nullptr) return tl::unexpected(ENOENT);
  if (found == impl_->qps_by_number.end() || found->second->domain != xrcd->domain)
    return tl::unexpected(EINVAL);
  if (impl_->totals.qps >= impl_->config.limits.max_qp) return tl::unexpected(ENOMEM);
  auto qp = std::make_unique<Qp>();
  qp->context = context;
  qp->spec = found->second->openings.front()->spec;
  qp->spec.user_pointer = user_pointer;
  qp->body = found->second->openings.front()->body;
  qp->xrcd = xrcd;
  return CreatedQp{impl_->insert_qp(*context, std::move(qp)), qpn};
}

}  // namespace rocemu::device
