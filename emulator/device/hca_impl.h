// The inside of the HCA: its tables, and what connects them to the transport.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>

#include "base/time.h"
#include "emulator/device/hca.h"
#include "emulator/device/objects/cq_publisher.h"
#include "emulator/device/objects/objects.h"
#include "emulator/device/objects/xrc_domain.h"

namespace rocemu::device {

// An object of a program by its handle; null when there is no such object, or no context.
template <typename T>
T* find_object(const Context* context, HandleTable<T> Context::*table, Handle handle) {
  return context == nullptr ? nullptr : (context->*table).find(handle);
}

// News that wait for Hca::publish_completions().
struct DeferredEvents {
  std::deque<wire::Qpn> qps_in_error;  // their queues are to be flushed once more
  // These events tell of completions and so come after them.
  std::vector<std::pair<wire::Qpn, transport::QpEvent>> qp_events;
  std::vector<Srq*> srqs_at_limit;

  bool empty() const { return qps_in_error.empty() && qp_events.empty() && srqs_at_limit.empty(); }
};

struct Hca::Impl final : transport::EventSink {
  Impl(const HcaConfig& hca_config, const transport::TransportLimits& limits,
       AddressResolver& address_resolver, const HcaParts& parts)
      : config(hca_config),
        resolver(address_resolver),
        regions(hca_config.limits.max_mr + hca_config.limits.max_mw,
                seed_of_device(parts.number_seed)),
        memory(parts.memory(regions)),
        endpoint(parts.endpoint(*memory, *this, limits, hca_config.limits.max_qp)),
        decorate_queues(parts.queues),
        numbers{HandleNumbers(hca_config.index, static_cast<uint32_t>(parts.number_seed))} {
    if (parts.number_seed != 0) endpoint->draw_qpns(seed_of_device(parts.number_seed));
  }

  // 0 stays 0.
  uint64_t seed_of_device(uint64_t number_seed) const {
    return number_seed == 0 ? 0 : number_seed + config.index;
  }

  // transport::EventSink
  void on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept override;
  void on_qp_error(wire::Qpn qpn) noexcept override;

  // hca.cc
  Context* find_context(ContextId id) const;
  bool has_room_for_pd(const Context& context) const;
  // True when a program may have one more object of a kind of which the device has `total`, and may
  // have `limit`, so that others are left some. `held` counts those that one of its contexts has.
  template <typename Held>
  bool has_room(uint64_t program, uint32_t total, uint32_t limit, Held held) const {
    if (total >= limit) return false;
    constexpr uint32_t kFewest =
        256;  // whoever configures a limit below this wants to see objects run out
    const uint32_t share = limit - limit / 4;
    if (limit < kFewest || total < share) return true;
    uint32_t own = 0;
    for (const auto& [id, context] : contexts)
      if (context->program == program) own += held(*context);
    return own < share;
  }
  void destroy_cq(Cq& cq);

  // hca_events.cc
  void send_async_event(Context& context, uint64_t element, uint32_t type, uint32_t& written);
  void send_qp_event(wire::Qpn qpn, transport::QpEvent event);
  void handle_overrun(Cq& cq);
  void send_due_events();

  // hca_regions.cc
  int check_registration(const MrSpec& spec) const;
  Result<MemoryRegion> make_region(Context& context, const MrSpec& spec, Pd& pd, Dm*& dm);
  void destroy_mr(Mr& mr);

  // hca_windows.cc
  void destroy_mw(Mw& mw);
  void destroy_dm(Dm& dm);

  // hca_qp.cc
  int find_parts(Context& context, const QpSpec& spec, Qp& qp) const;
  Handle insert_qp(Context& context, std::unique_ptr<Qp> qp);
  void destroy_qp(Qp& qp);
  int check_attributes(const QpAttr& attr, uint32_t mask) const;
  transport::WaitFacts wait_facts(TimeNs now, const QpBody& body) const;
  Result<QpPaths> resolve_paths(const QpBody& body, const QpAttr& attr, uint32_t mask);
  transport::QpAttributes transport_attributes(const QpBody& body, const QpAttr& attr,
                                               const QpPaths& paths) const;

  // hca_migration.cc
  int check_migration(const QpBody& body, const QpAttr& attr, uint32_t mask,
                      transport::QpState to) const;

  // hca_flows.cc
  void destroy_flow(OpenFlow& open);

  // hca_srq.cc
  void destroy_srq(Srq& srq);

  // The numbers of what is made next.
  struct Numbers {
    HandleNumbers handles;
    ContextId next_context = 1;
    transport::PdHandle next_pd = 1;
  };

  HcaConfig config;
  AddressResolver& resolver;
  MemoryRegions regions;
  std::unique_ptr<transport::Memory> memory;
  std::unique_ptr<dma::AddressSpace> null_memory = dma::AddressSpace::none();  // null regions'
  std::unique_ptr<transport::Endpoint> endpoint;
  WorkQueueDecorator decorate_queues;

  std::unordered_map<ContextId, std::unique_ptr<Context>> contexts;
  Numbers numbers;
  ObjectCounts totals;
  std::unordered_map<uint32_t, QpBody*> qps_by_number;
  XrcDomains xrc_domains;
  CqPublisher cq_publisher;
  DeferredEvents deferred;
};

// hca_migration.cc
transport::MigrationRequest migration_asked_for(const QpAttr& attr, uint32_t mask);
// The transport has made the alternate path of a QP its path.
void take_alternate_path(QpBody& body);

}  // namespace rocemu::device
