// Multicast groups of the HCA (IBTA vol 1, 10.5; ibv_attach_mcast(3)). The port takes multicast
// frames of every group; only attached QPs get them.
#include <cerrno>

#include "emulator/device/attributes/path.h"
#include "emulator/device/hca_impl.h"

namespace rocemu::device {

namespace {

int check(const Qp* qp, const wire::Gid& group) {
  if (qp == nullptr) return ENOENT;
  const bool takes_part = qp->body->service == transport::Service::ud;
  return takes_part && is_multicast(group) ? 0 : EINVAL;
}

}  // namespace

int Hca::attach_multicast(ContextId id, Handle handle, const wire::Gid& group) {
  Context* context = impl_->find_context(id);
  const Qp* qp = find_object(context, &Context::qps, handle);
  if (const int error = check(qp, group)) return error;
  transport::MulticastGroups& groups = impl_->endpoint->multicast_groups();
  const DeviceLimits& limits = impl_->config.limits;
  const wire::Qpn qpn = qp->body->qpn;
  const auto members = groups.members(group);
  if (std::ranges::find(members, qpn) != members.end()) return 0;
  // A program has no more groups than attachments.
  const auto attached = [](const Context& it) { return it.multicast_attachments; };
  if ((members.empty() &&
       !impl_->has_room(context->program, static_cast<uint32_t>(groups.group_count()),
                        limits.max_mcast_grp, attached)) ||
      members.size() >= limits.max_mcast_qp_attach ||
      !impl_->has_room(context->program, impl_->totals.multicast_attachments,
                       limits.max_total_mcast_qp_attach, attached))
    return ENOMEM;
  groups.attach(group, qpn);
  ++impl_->totals.multicast_attachments;
  ++context->multicast_attachments;
  return 0;
}

int Hca::detach_multicast(ContextId id, Handle handle, const wire::Gid& group) {
  Context* context = impl_->find_context(id);
  const Qp* qp = find_object(context, &Context::qps, handle);
  if (const int error = check(qp, group)) return error;
  if (!impl_->endpoint->multicast_groups().detach(group, qp->body->qpn)) return EINVAL;
  --impl_->totals.multicast_attachments;
  --context->multicast_attachments;
  return 0;
}

}  // namespace rocemu::device
