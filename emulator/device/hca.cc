#include "emulator/device/hca.h"

#include <cerrno>

#include "base/verbs/numbers.h"
#include "emulator/device/hca_impl.h"

namespace rocemu::device {

namespace {

constexpr uint64_t kPortNumber = 1;

}  // namespace

Hca::Hca(const HcaConfig& config, const transport::TransportLimits& limits,
         AddressResolver& resolver, const HcaParts& parts)
    : impl_(std::make_unique<Impl>(config, limits, resolver, parts)) {}

Hca::~Hca() {
  while (!impl_->contexts.empty()) close_context(impl_->contexts.begin()->first);
}

const HcaConfig& Hca::config() const { return impl_->config; }
transport::Endpoint& Hca::endpoint() { return *impl_->endpoint; }
ObjectCounts Hca::counts() const { return impl_->totals; }

void Hca::set_port(const PortConfig& port) {
  PortConfig& own = impl_->config.port;
  const auto tell = [&](uint32_t event) {
    for (const auto& entry : impl_->contexts)
      entry.second->async_events->async_event(kPortNumber, event);
  };
  const bool gids_changed = own.gids != port.gids;
  const bool state_changed = own.active != port.active;
  own = port;
  if (gids_changed) tell(verbs::async_event::kGidChange);
  if (state_changed)
    tell(port.active ? verbs::async_event::kPortActive : verbs::async_event::kPortError);
}

bool Hca::Impl::has_room_for_pd(const Context& context) const {
  return has_room(context.program, totals.pds, config.limits.max_pd,
                  [](const Context& own) { return own.pds.size(); });
}

Context* Hca::Impl::find_context(ContextId id) const {
  const auto found = contexts.find(id);
  return found == contexts.end() ? nullptr : found->second.get();
}

Result<ContextId> Hca::open_context(std::unique_ptr<dma::AddressSpace> memory,
                                    std::unique_ptr<EventChannel> async_events, uint64_t program) {
  if (!impl_->has_room(program, impl_->totals.contexts, impl_->config.limits.max_contexts,
                       [](const Context&) { return 1u; }))
    return tl::unexpected(ENOMEM);
  auto context = std::make_unique<Context>(impl_->config.port, impl_->numbers.handles);
  context->memory = std::move(memory);
  context->async_events = std::move(async_events);
  context->program = program;
  const ContextId id = impl_->numbers.next_context++;
  context->id = id;
  impl_->contexts.emplace(id, std::move(context));
  ++impl_->totals.contexts;
  return id;
}

const dma::AddressSpace* Hca::memory_of(ContextId id) const {
  const Context* const context = impl_->find_context(id);
  return context == nullptr ? nullptr : context->memory.get();
}

namespace {

// Destroys objects of the table as long as `budget` lasts.
template <class T, class Destroy>
void clear(HandleTable<T>& table, uint32_t& budget, Destroy destroy) {
  while (budget > 0) {
    const uint32_t handle = table.any();
    if (handle == 0) return;
    destroy(*table.find(handle));
    table.erase(handle);
    --budget;
  }
}

}  // namespace

bool Hca::clear_context(ContextId id, uint32_t objects) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return true;
  // Users before what they use.
  clear(context->flows, objects, [&](OpenFlow& flow) { impl_->destroy_flow(flow); });
  clear(context->qps, objects, [&](Qp& qp) { impl_->destroy_qp(qp); });
  clear(context->srqs, objects, [&](Srq& srq) { impl_->destroy_srq(srq); });
  clear(context->cqs, objects, [&](Cq& cq) { impl_->destroy_cq(cq); });
  clear(context->mws, objects, [&](Mw& mw) { impl_->destroy_mw(mw); });
  clear(context->mrs, objects, [&](Mr& mr) { impl_->destroy_mr(mr); });
  clear(context->dms, objects, [&](Dm& dm) { impl_->destroy_dm(dm); });
  clear(context->channels, objects, [&](Channel&) { --impl_->totals.channels; });
  clear(context->addresses.handles, objects, [&](Ah&) { --impl_->totals.ahs; });
  clear(context->xrcds, objects, [&](OpenXrcd&) { --impl_->totals.xrcds; });
  clear(context->pds, objects, [&](Pd&) { --impl_->totals.pds; });
  return objects > 0;
}

void Hca::close_context(ContextId id) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return;
  clear_context(id, UINT32_MAX);
  --impl_->totals.contexts;
  impl_->contexts.erase(id);
}

Result<Handle> Hca::alloc_pd(ContextId id) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (!impl_->has_room_for_pd(*context)) return tl::unexpected(ENOMEM);
  ++impl_->totals.pds;
  return context->pds.insert(std::make_unique<Pd>(Pd{impl_->numbers.next_pd++, 0}));
}

int Hca::dealloc_pd(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Pd* pd = find_object(context, &Context::pds, handle);
  if (pd == nullptr) return ENOENT;
  if (pd->users > 0) return EBUSY;
  context->pds.erase(handle);
  --impl_->totals.pds;
  return 0;
}

Result<Handle> Hca::create_channel(ContextId id, std::unique_ptr<EventChannel> events) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (!impl_->has_room(context->program, impl_->totals.channels, impl_->config.limits.max_channels,
                       [](const Context& own) { return own.channels.size(); }))
    return tl::unexpected(ENOMEM);
  ++impl_->totals.channels;
  return context->channels.insert(std::make_unique<Channel>(Channel{std::move(events), 0}));
}

int Hca::destroy_channel(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Channel* channel = find_object(context, &Context::channels, handle);
  if (channel == nullptr) return ENOENT;
  if (channel->users > 0) return EBUSY;
  context->channels.erase(handle);
  --impl_->totals.channels;
  return 0;
}

}  // namespace rocemu::device
