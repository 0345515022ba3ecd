#include "verbs_shim/checker/memory/suspects.h"

#include <algorithm>

#include "verbs_shim/abi/inspect.h"

namespace rocemu::check {
namespace {

// False only where the NIC is sure. A process that has the device open twice has two contexts, and
// a peer may have come by either.
bool may_be_written(Context& context, const Span& span) {
  rocemu_was_written request = {};
  rocemu_was_written_reply reply = {};
  request.address = span.from;
  request.bytes = span.bytes;
  return context.control(ROCEMU_OP_WAS_WRITTEN, request, reply) != 0 || reply.was_written != 0;
}

bool may_be_written(const std::vector<std::shared_ptr<Object>>& objects, const Suspect& suspect) {
  bool is_asked = false;
  for (const std::shared_ptr<Object>& object : objects) {
    if (object->kind != ROCEMU_CHECK_CONTEXT) continue;
    is_asked = true;
    for (const Span& span : suspect.spans) {
      if (may_be_written(static_cast<Context&>(*object), span)) return true;
    }
  }
  return !is_asked;
}

}  // namespace

void Suspects::add(Suspect suspect) {
  std::lock_guard lock(lock_);
  if (suspects_.size() < kMax) suspects_.push_back(std::move(suspect));
  has_any_ = true;
}

std::vector<Suspect> Suspects::settle(const Model& model) {
  if (!has_any_.load(std::memory_order_relaxed)) [[likely]]
    return {};
  std::vector<Suspect> suspects;
  {
    std::lock_guard lock(lock_);
    suspects.swap(suspects_);
    has_any_ = false;
  }
  const auto objects = model.all();
  std::erase_if(suspects, [&objects](const Suspect& s) { return may_be_written(objects, s); });
  return suspects;
}

}  // namespace rocemu::check
