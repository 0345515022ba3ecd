// What verbs_shim/abi/memory.h and import.h ask for, and regions as such.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "tests/fuzz/control/client.h"
#include "tests/fuzz/control/outcome.h"
#include "tests/fuzz/expect.h"

namespace rocemu::fuzz {

namespace {

struct PlainMemory final : device::DeviceMemory {
  explicit PlainMemory(size_t length_bytes) : memory(length_bytes) {}
  std::span<std::byte> bytes() noexcept override { return memory; }
  int descriptor() const noexcept override { return -1; }
  std::vector<std::byte> memory;
};

}  // namespace

bool Client::dispatch_memory(const daemon::Request& request, uint32_t handle) {
  switch (request.header.op) {
    case ROCEMU_OP_REG_MR:
      register_region(daemon::to_mr_spec(std::get<rocemu_reg_mr>(request.body)));
      return true;
    case ROCEMU_OP_REG_DM_MR:
      register_region(daemon::to_mr_spec(std::get<rocemu_reg_dm_mr>(request.body)));
      return true;
    case ROCEMU_OP_ALLOC_NULL_MR: {
      device::MrSpec spec;
      spec.pd = handle;
      spec.kind = device::MrKind::null;
      register_region(spec);
      return true;
    }
    case ROCEMU_OP_DEREG_MR:
      dereg_mr(handle);
      return true;
    case ROCEMU_OP_REREG_MR:
      rereg_mr(std::get<rocemu_rereg_mr>(request.body));
      return true;
    case ROCEMU_OP_ALLOC_MW:
      alloc_mw(std::get<rocemu_alloc_mw>(request.body));
      return true;
    case ROCEMU_OP_DEALLOC_MW:
      dealloc_mw(handle);
      return true;
    case ROCEMU_OP_ALLOC_DM:
      alloc_dm(std::get<rocemu_alloc_dm>(request.body));
      return true;
    case ROCEMU_OP_FREE_DM:
      free_dm(handle);
      return true;
    case ROCEMU_OP_CHECK_PREFETCH: {
      const auto& m = std::get<rocemu_check_prefetch>(request.body);
      (void)hca_.check_prefetch(context_->id(), m.pd, wire::LKey{m.lkey}, m.iova, m.length_bytes,
                                m.for_writing != 0);
      return true;
    }
    case ROCEMU_OP_RESIZE_CQ:
      resize_cq(std::get<rocemu_resize_cq>(request.body));
      return true;
    case ROCEMU_OP_MODERATE_CQ: {
      const auto& m = std::get<rocemu_moderate_cq>(request.body);
      const int outcome =
          hca_.moderate_cq(context_->id(), m.cq, {m.count, uint64_t{m.period_us} * 1000});
      expect(outcome == (model_.cqs.contains(m.cq) ? 0 : EINVAL), "a CQ that exists is moderated");
      return true;
    }
    case ROCEMU_OP_JOIN_CONTEXT:
      join_context(std::get<rocemu_join_context>(request.body));
      return true;
    case ROCEMU_OP_IMPORT_PD:
      import_pd(handle);
      return true;
    case ROCEMU_OP_IMPORT_MR: {
      const auto& m = std::get<rocemu_import_mr>(request.body);
      const auto imported = hca_.import_mr(context_->id(), m.pd, m.mr);
      expect(!imported || model_.pds.contains(m.pd), "a region is imported into a PD");
      return true;
    }
    case ROCEMU_OP_IMPORT_DM:
      import_dm(handle);
      return true;
    default:
      return false;
  }
}

void Client::register_region(const device::MrSpec& spec) {
  const auto keys = hca_.reg_mr(context_->id(), spec);
  if (!keys) return;
  expect(model_.pds.contains(spec.pd), "a region has a PD");
  expect(keys->lkey.value == keys->rkey.value && keys->lkey.value != 0, "a region has a key");
  expect(std::ranges::none_of(model_.mrs,
                              [&](const auto& mr) { return mr.second.key == keys->lkey.value; }),
         "keys of regions differ");
  const uint32_t dm = spec.kind == device::MrKind::device_memory ? spec.dm : 0;
  expect(dm == 0 || model_.dms.contains(dm), "a region of device memory has that");
  expect(model_.mrs.emplace(keys->mr, Model::Mr{spec.pd, keys->lkey.value, dm}).second,
         "a new region has a new handle");
  ++model_.pds.at(spec.pd).users;
  if (dm != 0) ++model_.dms.at(dm).users;
}

void Client::dereg_mr(uint32_t handle) {
  const int outcome = hca_.dereg_mr(context_->id(), handle);
  const auto found = model_.mrs.find(handle);
  if (found == model_.mrs.end()) return expect(outcome == EINVAL, "what is not there cannot go");
  // Which windows are bound is the affair of work requests.
  expect(outcome == 0 || outcome == EBUSY, "a region goes, but for those with windows");
  if (outcome != 0) return;
  --model_.pds.at(found->second.pd).users;
  if (found->second.dm != 0) --model_.dms.at(found->second.dm).users;
  model_.mrs.erase(found);
}

void Client::rereg_mr(const rocemu_rereg_mr& message) {
  const auto keys =
      hca_.rereg_mr(context_->id(), message.mr, message.flags, daemon::to_mr_spec(message));
  if (!keys) return;
  const auto found = model_.mrs.find(message.mr);
  expect(found != model_.mrs.end(), "only a region that exists is registered again");
  expect(keys->mr == message.mr && keys->lkey.value == found->second.key, "its key stays");
  if ((message.flags & device::kChangePd) == 0) return;
  expect(model_.pds.contains(message.pd), "a region has a PD");
  --model_.pds.at(found->second.pd).users;
  ++model_.pds.at(message.pd).users;
  found->second.pd = message.pd;
}

void Client::alloc_mw(const rocemu_alloc_mw& message) {
  const auto keys = hca_.alloc_mw(context_->id(), message.pd, message.type);
  if (!keys) return;
  expect(model_.pds.contains(message.pd), "a window has a PD");
  expect(model_.mws.emplace(keys->mr, Model::Mw{message.pd}).second,
         "a new window has a new handle");
  ++model_.pds.at(message.pd).users;
}

void Client::dealloc_mw(uint32_t handle) {
  const int outcome = hca_.dealloc_mw(context_->id(), handle);
  const auto found = model_.mws.find(handle);
  expect(outcome == (found == model_.mws.end() ? EINVAL : 0), "a window can always go");
  if (outcome != 0) return;
  --model_.pds.at(found->second.pd).users;
  model_.mws.erase(found);
}

void Client::alloc_dm(const rocemu_alloc_dm& message) {
  if (device::check_dm(hca_.config().limits, message.length_bytes) != 0) return;
  const auto dm =
      hca_.alloc_dm(context_->id(), std::make_unique<PlainMemory>(message.length_bytes));
  if (!dm) return;
  expect(model_.dms.emplace(*dm, Model::Dm{message.length_bytes, 0}).second,
         "new device memory has a new handle");
}

void Client::free_dm(uint32_t handle) {
  const int outcome = hca_.free_dm(context_->id(), handle);
  expect(outcome == expected_outcome(model_.dms, handle),
         "device memory goes when no region is of it");
  if (outcome == 0) model_.dms.erase(handle);
}

void Client::resize_cq(const rocemu_resize_cq& message) {
  if (message.cqe == 0 || message.cqe > hca_.config().limits.max_cqe) return;
  const uint32_t entries = daemon::cq_entries(message.cqe);
  const int outcome = hca_.resize_cq(
      context_->id(), message.cq, clock_.now_ns(),
      std::make_unique<daemon::SharedCompletionRing>(
          daemon::SharedMemory("fuzz-cq", daemon::cq_memory_bytes(entries)), entries, host_));
  expect(outcome == 0 ? model_.cqs.contains(message.cq) : outcome == EINVAL,
         "a CQ that exists is resized, if what waits in it fits");
}

void Client::join_context(const rocemu_join_context& message) {
  (void)hca_.join_context(context_->id(), {message.token[0], message.token[1]});
}

void Client::import_pd(uint32_t there) {
  const auto pd = hca_.import_pd(context_->id(), there);
  if (!pd) return;
  expect(model_.pds.emplace(*pd, Model::Pd{}).second, "an imported PD has a new handle");
}

void Client::import_dm(uint32_t there) {
  const auto dm = hca_.import_dm(context_->id(), there);
  if (!dm) return;
  expect(model_.dms.emplace(dm->dm, Model::Dm{}).second, "imported device memory has a new handle");
}

}  // namespace rocemu::fuzz
