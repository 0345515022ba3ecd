// XRC domains of the HCA, and XRC_RECV QPs with several holders.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

Result<Handle> Hca::open_xrcd(ContextId id, const XrcdSpec& spec) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(EINVAL);
  std::shared_ptr<Xrcd> domain;
  std::erase_if(impl_->shared_domains, [](const auto& known) { return known.expired(); });
  for (const auto& known : impl_->shared_domains) {
    const auto candidate = known.lock();
    if (spec.file && candidate->file == spec.file) domain = candidate;
  }
  if (domain != nullptr && spec.exclusive) return tl::unexpected(EINVAL);
  if (domain == nullptr && !spec.create) return tl::unexpected(spec.file ? EAGAIN : EINVAL);
  if (impl_->totals.xrcds >= impl_->config.limits.max_xrcd) return tl::unexpected(ENOMEM);
  if (domain == nullptr) {
    domain = std::make_shared<Xrcd>();
    domain->file = spec.file;
    domain->file_hold = spec.file_hold;
    if (spec.file) impl_->shared_domains.push_back(domain);
  }
  ++impl_->totals.xrcds;
  return context->xrcds.insert(std::make_unique<OpenXrcd>(OpenXrcd{std::move(domain), 0}));
}

int Hca::close_xrcd(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  const OpenXrcd* xrcd = context == nullptr ? nullptr : context->xrcds.find(handle);
  if (xrcd == nullptr) return EINVAL;
  if (xrcd->users > 0) return EBUSY;
  context->xrcds.erase(handle);
  --impl_->totals.xrcds;
  return 0;
}

Result<CreatedQp> Hca::open_qp(ContextId id, Handle xrcd_handle, wire::Qpn qpn,
                               uint64_t user_pointer) {
  Context* context = impl_->find_context(id);
  OpenXrcd* xrcd = context == nullptr ? nullptr : context->xrcds.find(xrcd_handle);
  const auto found = impl_->qps_by_number.find(qpn.value);
  if (xrcd == nullptr || found == impl_->qps_by_number.end() ||
      found->second->domain != xrcd->domain)
    return tl::unexpected(EINVAL);
  if (impl_->totals.qps >= impl_->config.limits.max_qp) return tl::unexpected(ENOMEM);
  auto qp = std::make_unique<Qp>();
  qp->context = context;
  qp->spec = found->second->holders.front()->spec;
  qp->spec.user_pointer = user_pointer;
  qp->body = found->second->holders.front()->body;
  qp->xrcd = xrcd;
  return CreatedQp{impl_->insert_qp(*context, std::move(qp)), qpn};
}

}  // namespace rocemu::device
