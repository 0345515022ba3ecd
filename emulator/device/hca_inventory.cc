// The inventory of the HCA: its objects a page at a time, for those who look at it from outside.
//
// A page is bounded both by what it holds and by what was looked at for it, as the engine makes it
// between two turns: a program may hold a million objects, or none in each of a thousand contexts.
#include <algorithm>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {
namespace {

constexpr size_t kMaxPlaces = 1024;  // looked at for one page, contexts among them

void describe(const Pd& pd, ResourceReport& report) {
  report.number = report.pd = pd.id;
  report.users = pd.users;
}

void describe(const Cq& cq, ResourceReport& report) {
  report.users = cq.users;
  report.entries = cq.entries();
}

void describe(const Srq& srq, ResourceReport& report) {
  report.pd = srq.pd().id;
  report.xrc = srq.spec().xrc;
  report.tag_matching = srq.spec().tag_matching;
}

void describe(const Qp& qp, const transport::Endpoint& endpoint, ResourceReport& report) {
  const QpBody& body = *qp.body;
  report.number = body.qpn.value;
  report.pd = qp.pd == nullptr ? 0 : qp.pd->id;
  report.service = body.service;
  report.state = endpoint.state(body.qpn);
  report.port = body.attr.port_num;
  report.remote_qpn = body.attr.dest_qp_num;
  report.rq_psn = body.attr.rq_psn;
  report.sq_psn = body.attr.sq_psn;
  report.path_mig_state = body.attr.path_mig_state;
}

void describe(const Mr& mr, const MemoryRegions& regions, ResourceReport& report) {
  report.key = mr.key;
  report.pd = mr.pd->id;
  const MemoryRegion* const region = regions.find_entry(mr.key);
  if (region == nullptr) return;
  report.iova = region->iova;
  report.length_bytes = region->length_bytes;
}

// Collects a page, context by context.
class Pager {
 public:
  Pager(ResourceCursor from, size_t most) : from_(from), most_(most) {}

  // Adds what describe(object, report) takes (it says false of what is not to be listed) of one
  // context's table. False when the page is full, or enough was looked at.
  template <class T, class Describe>
  bool add(const Context& context, const HandleTable<T>& table, Describe take) {
    const size_t first = context.id == from_.context ? from_.place : 0;
    ++looked_at_;
    const size_t behind = table.for_some(
        first,
        [&](uint32_t handle, const T& object) {
          ResourceReport report{.number = handle, .context = context.id};
          report.program = context.memory->pid();
          if (take(object, report)) page.reports.push_back(report);
          return page.reports.size() < most_;
        },
        kMaxPlaces - std::min(looked_at_, kMaxPlaces));
    looked_at_ += behind - std::min(first, behind);
    if (behind >= table.places() && has_room()) return true;
    page.next = ResourceCursor{context.id, static_cast<uint32_t>(behind)};
    return false;
  }

  bool add(const Context& context) {
    if (!has_room()) {
      page.next = ResourceCursor{context.id, 0};
      return false;
    }
    ++looked_at_;
    page.reports.push_back(
        {.number = context.id, .context = context.id, .program = context.memory->pid()});
    return true;
  }

  ResourcePage page;

 private:
  bool has_room() const { return page.reports.size() < most_ && looked_at_ < kMaxPlaces; }

  ResourceCursor from_;
  size_t most_;
  size_t looked_at_ = 0;
};

}  // namespace

ResourcePage Hca::list_resources(ResourceKind kind, ResourceCursor from, size_t most) const {
  std::vector<const Context*> contexts;
  for (const auto& [id, context] : impl_->contexts)
    if (id >= from.context) contexts.push_back(context.get());
  std::ranges::sort(contexts, {}, &Context::id);

  const auto plainly = [](const auto& object, ResourceReport& report) {
    describe(object, report);
    return true;
  };
  Pager pager(from, most);
  const auto add = [&](const Context& context) {
    switch (kind) {
      case ResourceKind::context:
        return pager.add(context);
      case ResourceKind::pd:
        return pager.add(context, context.pds, plainly);
      case ResourceKind::cq:
        return pager.add(context, context.cqs, plainly);
      case ResourceKind::srq:
        return pager.add(context, context.srqs, plainly);
      case ResourceKind::mr:
        return pager.add(context, context.mrs, [this](const Mr& mr, ResourceReport& report) {
          describe(mr, impl_->regions, report);
          return true;
        });
      case ResourceKind::qp:
        return pager.add(context, context.qps, [this](const Qp& qp, ResourceReport& report) {
          describe(qp, *impl_->endpoint, report);
          return qp.body->openings.front() == &qp;  // once, however often it was opened
        });
    }
    return false;
  };
  for (const Context* context : contexts)
    if (!add(*context)) break;
  return std::move(pager.page);
}

std::optional<transport::Counters> Hca::counters_of(wire::Qpn qpn) const {
  if (!impl_->qps_by_number.contains(qpn.value)) return std::nullopt;
  return impl_->endpoint->counters(qpn);
}

}  // namespace rocemu::device
