// The answers to what verbs_shim/abi/memory.h and import.h ask for, and about regions as such.
#include <sys/stat.h>

#include <algorithm>

#include "emulator/device/hca.h"
#include "tests/fuzz/control/answers.h"
#include "tests/fuzz/expect.h"
#include "verbs_shim/abi/import.h"
#include "verbs_shim/abi/memory.h"

namespace rocemu::fuzz {
namespace {

using AboutHandle = Exchange<rocemu_handle_message>;

// Which memory a descriptor is of.
uint64_t inode_of(int fd) {
  struct stat status {};
  expect(::fstat(fd, &status) == 0, "the descriptor of device memory is one");
  return status.st_ino;
}

void new_region(Model& model, uint32_t pd, uint32_t dm, const Answer& answer) {
  if (answer.header().status != 0) return;
  const auto reply = answer.as<rocemu_reg_mr_reply>();
  expect(model.pds.contains(pd), "a region has a PD");
  expect(reply.lkey == reply.rkey && reply.lkey != 0, "a region has a key");
  expect(
      std::ranges::none_of(model.mrs, [&](const auto& mr) { return mr.second.key == reply.lkey; }),
      "keys of regions differ");
  expect(dm == 0 || model.dms.contains(dm), "a region of device memory has that");
  expect(model.mrs.emplace(reply.mr, Model::Mr{pd, reply.lkey, dm}).second,
         "a new region has a new handle");
  ++model.pds.at(pd).users;
  if (dm != 0) ++model.dms.at(dm).users;
}

void reg_mr(Model& model, const Exchange<rocemu_reg_mr>& e) {
  new_region(model, e.request.pd, 0, e.answer);
}

void reg_dm_mr(Model& model, const Exchange<rocemu_reg_dm_mr>& e) {
  new_region(model, e.request.pd, e.request.dm, e.answer);
}

void alloc_null_mr(Model& model, const AboutHandle& e) {
  new_region(model, e.request.handle, 0, e.answer);
}

void dereg_mr(Model& model, const AboutHandle& e) {
  const auto found = model.mrs.find(e.request.handle);
  if (found == model.mrs.end()) return expect(e.status() == ENOENT, "what is not there cannot go");
  // Which windows are bound is the affair of work requests.
  expect(e.status() == 0 || e.status() == EBUSY, "a region goes, but for those with windows");
  if (e.status() != 0) return;
  --model.pds.at(found->second.pd).users;
  if (found->second.dm != 0) --model.dms.at(found->second.dm).users;
  model.mrs.erase(found);
}

void rereg_mr(Model& model, const Exchange<rocemu_rereg_mr>& e) {
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_reg_mr_reply>();
  const auto found = model.mrs.find(e.request.mr);
  expect(found != model.mrs.end(), "only a region that exists is registered again");
  expect(reply.mr == e.request.mr && reply.lkey == found->second.key, "its key stays");
  if ((e.request.flags & device::kChangePd) == 0) return;
  expect(model.pds.contains(e.request.pd), "a region has a PD");
  --model.pds.at(found->second.pd).users;
  ++model.pds.at(e.request.pd).users;
  found->second.pd = e.request.pd;
}

void alloc_mw(Model& model, const Exchange<rocemu_alloc_mw>& e) {
  if (e.status() != 0) return;
  expect(model.pds.contains(e.request.pd), "a window has a PD");
  expect(model.mws.emplace(e.reply<rocemu_reg_mr_reply>().mr, Model::Mw{e.request.pd}).second,
         "a new window has a new handle");
  ++model.pds.at(e.request.pd).users;
}

void dealloc_mw(Model& model, const AboutHandle& e) {
  const auto found = model.mws.find(e.request.handle);
  expect(e.status() == (found == model.mws.end() ? ENOENT : 0), "a window can always go");
  if (e.status() != 0) return;
  --model.pds.at(found->second.pd).users;
  model.mws.erase(found);
}

void alloc_dm(Model& model, const Exchange<rocemu_alloc_dm>& e) {
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_alloc_dm_reply>();
  expect(reply.memory_bytes >= e.request.length_bytes && e.answer.fds.size() == 1,
         "device memory has what was asked for");
  expect(model.dms
             .emplace(reply.dm, Model::Dm{e.request.length_bytes, inode_of(e.answer.fds[0].get())})
             .second,
         "new device memory has a new handle");
}

void free_dm(Model& model, const AboutHandle& e) {
  expect(e.status() == expected_outcome(model.dms, e.request.handle),
         "device memory goes when no region is of it");
  if (e.status() == 0) model.dms.erase(e.request.handle);
}

void import_pd(Model& model, const AboutHandle& e) {
  if (e.status() != 0) return;
  expect(model.pds.emplace(e.reply<rocemu_handle_message>().handle, Model::Pd{}).second,
         "an imported PD has a new handle");
}

void import_mr(Model& model, const Exchange<rocemu_import_mr>& e) {
  expect(e.status() != 0 || model.pds.contains(e.request.pd), "a region is imported into a PD");
}

void import_dm(Model& model, const AboutHandle& e) {
  if (e.status() != 0) return;
  const auto& reply = e.reply<rocemu_import_dm_reply>();
  expect(e.answer.fds.size() == 1, "imported device memory comes with its memory");
  expect(model.dms.emplace(reply.dm, Model::Dm{reply.length_bytes, inode_of(e.answer.fds[0].get())})
             .second,
         "imported device memory has a new handle");
}

}  // namespace

std::span<const Check> memory_checks() {
  static constexpr Check kChecks[] = {
      {ROCEMU_OP_REG_MR, &CheckOf<reg_mr>::run},
      {ROCEMU_OP_REG_DM_MR, &CheckOf<reg_dm_mr>::run},
      {ROCEMU_OP_ALLOC_NULL_MR, &CheckOf<alloc_null_mr>::run},
      {ROCEMU_OP_DEREG_MR, &CheckOf<dereg_mr>::run},
      {ROCEMU_OP_REREG_MR, &CheckOf<rereg_mr>::run},
      {ROCEMU_OP_ALLOC_MW, &CheckOf<alloc_mw>::run},
      {ROCEMU_OP_DEALLOC_MW, &CheckOf<dealloc_mw>::run},
      {ROCEMU_OP_ALLOC_DM, &CheckOf<alloc_dm>::run},
      {ROCEMU_OP_FREE_DM, &CheckOf<free_dm>::run},
      {ROCEMU_OP_IMPORT_PD, &CheckOf<import_pd>::run},
      {ROCEMU_OP_IMPORT_MR, &CheckOf<import_mr>::run},
      {ROCEMU_OP_IMPORT_DM, &CheckOf<import_dm>::run},
  };
  return kChecks;
}

}  // namespace rocemu::fuzz
