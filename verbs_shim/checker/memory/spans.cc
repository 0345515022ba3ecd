#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {
namespace {

// An implicit on-demand region. A null region has these numbers, too, and no place.
bool is_whole_address_space(const MemoryRegion& region) {
  return region.address == 0 && region.bytes == UINT64_MAX &&
         (region.access & IBV_ACCESS_ON_DEMAND) != 0;
}

bool find_span(const Context& context, const ibv_sge& sge, Span& span) {
  const std::shared_ptr<MemoryRegion> region = context.find_region(sge.lkey);
  if (region == nullptr) return false;
  span = {static_cast<uintptr_t>(sge.addr), sge.length};
  if (is_whole_address_space(*region)) return sge.addr <= UINTPTR_MAX - sge.length;
  const Span whole = span_of(*region);
  const uint64_t offset = sge.addr - region->iova;
  if (offset > whole.bytes || sge.length > whole.bytes - offset) return false;
  span.from = whole.from + offset;
  return true;
}

}  // namespace

Span span_of(const MemoryRegion& region) {
  const uint64_t address = region.address;
  const uint64_t bytes = region.bytes;
  if (address == 0 || bytes > UINTPTR_MAX - address) return {};
  return {static_cast<uintptr_t>(address), static_cast<size_t>(bytes)};
}

const std::vector<Span>* find_spans(const Context& context, Request& request) {
  // Read before the regions are: what changes afterwards has another number.
  const uint64_t now = context.regions_changed.load(std::memory_order_acquire);
  if (request.spans_known_since == now) return &request.spans;
  request.spans.clear();
  for (const ibv_sge& sge : request.sges) {
    if (sge.length == 0) continue;
    Span span;
    if (!find_span(context, sge, span)) return nullptr;
    request.spans.push_back(span);
  }
  request.spans_known_since = now;
  return &request.spans;
}

}  // namespace rocemu::check
