#include "verbs_shim/checker/model/model.h"

#include <algorithm>
#include <mutex>

namespace rocemu::check {
namespace {

constexpr size_t kGoneMax = 1024;

}  // namespace

void Model::add(std::shared_ptr<Object> object) {
  if (object->kind == ROCEMU_CHECK_QP) {
    auto qp = std::static_pointer_cast<QueuePair>(object);
    std::unique_lock lock(qp->context->tables_lock);
    qp->context->qps[qp->number] = qp;
  } else if (object->kind == ROCEMU_CHECK_MR) {
    auto region = std::static_pointer_cast<MemoryRegion>(object);
    std::unique_lock lock(region->context->tables_lock);
    region->context->regions[region->lkey] = region;
    ++region->context->regions_changed;
  }
  std::unique_lock lock(lock_);
  if (object->kind == ROCEMU_CHECK_CONTEXT) {
    contexts_.push_back(std::static_pointer_cast<Context>(object));
  }
  const Key key = {object->kind, object->handle};
  // The new object replaces one that had this address before.
  objects_[key] = {std::move(object), made_++};
}

void Model::remove(const std::shared_ptr<Object>& object, PlaceId gone_at) {
  object->gone_at = gone_at;
  object->gone = true;
  if (object->kind == ROCEMU_CHECK_QP) {
    std::unique_lock lock(object->context->tables_lock);
    const auto found = object->context->qps.find(object->number);
    if (found != object->context->qps.end() && found->second == object)
      object->context->qps.erase(found);
  } else if (object->kind == ROCEMU_CHECK_MR) {
    std::unique_lock lock(object->context->tables_lock);
    auto& regions = object->context->regions;
    const auto found = regions.find(static_cast<MemoryRegion&>(*object).lkey);
    if (found != regions.end() && found->second == object) regions.erase(found);
    ++object->context->regions_changed;
  }
  std::unique_lock lock(lock_);
  const auto found = objects_.find({object->kind, object->handle});
  if (found != objects_.end() && found->second.object == object) objects_.erase(found);
  if (gone_.size() < kGoneMax) {
    gone_.push_back(object);
  } else {
    gone_[next_gone_++ % kGoneMax] = object;
  }
}

std::shared_ptr<Object> Model::find(rocemu_check_kind kind, const void* handle) const {
  std::shared_lock lock(lock_);
  const auto found = objects_.find({kind, handle});
  return found == objects_.end() ? nullptr : found->second.object;
}

bool Model::try_has(rocemu_check_kind kind, const void* handle) const {
  std::shared_lock lock(lock_, std::try_to_lock);
  return lock.owns_lock() && objects_.contains({kind, handle});
}

std::shared_ptr<Context> Model::find_context(const ibv_context* context) const {
  return std::static_pointer_cast<Context>(find(ROCEMU_CHECK_CONTEXT, context));
}

std::shared_ptr<Object> Model::find_gone(rocemu_check_kind kind, const void* handle) const {
  std::shared_lock lock(lock_);
  for (size_t i = 0; i < gone_.size(); ++i) {
    const auto& object = gone_[(next_gone_ + gone_.size() - 1 - i) % gone_.size()];
    if (object->kind == kind && object->handle == handle) return object;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Object>> Model::all() const {
  std::vector<const Entry*> entries;
  std::shared_lock lock(lock_);
  for (const auto& [key, entry] : objects_) entries.push_back(&entry);
  std::ranges::sort(entries, {}, &Entry::sequence);
  std::vector<std::shared_ptr<Object>> result;
  for (const Entry* entry : entries) result.push_back(entry->object);
  return result;
}

}  // namespace rocemu::check
