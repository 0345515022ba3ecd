// The answers about what the NIC inspects.
#include "tests/fuzz/control/answers.h"
#include "tests/fuzz/expect.h"
#include "verbs_shim/abi/inspect.h"

namespace rocemu::fuzz {
namespace {

void inspect_qp(Model& model, const Exchange<rocemu_handle_message>& e) {
  const auto found = model.qps.find(e.request.handle);
  expect(e.status() == (found == model.qps.end() ? ENOENT : 0), "a QP that exists is inspected");
  if (e.status() != 0) return;
  const auto reply = e.reply<rocemu_inspect_qp_reply>();
  expect(reply.qp_num == found->second.qpn, "it is the QP that was asked about");
  expect(reply.receives_missing_before_first <= reply.receives_missing, "a part is not the more");
}

void take_findings(Model&, const Exchange<rocemu_header>& e) {
  expect(e.status() == 0, "findings can always be taken");
  const auto reply = e.reply<rocemu_take_findings_reply>();
  expect(reply.count <= ROCEMU_FINDINGS_MAX, "so many fit");
  for (uint32_t i = 0; i < reply.count; ++i)
    expect(reply.findings[i].kind < ROCEMU_FOUND_KINDS, "a finding is of a kind that there is");
}

void was_written(Model&, const Exchange<rocemu_was_written>& e) {
  expect(e.status() == 0, "whether memory was written can always be asked");
  expect(e.reply<rocemu_was_written_reply>().was_written <= 1, "it was, or it was not");
}

}  // namespace

std::span<const Check> inspection_checks() {
  static constexpr Check kChecks[] = {
      {ROCEMU_OP_INSPECT_QP, &CheckOf<inspect_qp>::run},
      {ROCEMU_OP_TAKE_FINDINGS, &CheckOf<take_findings>::run},
      {ROCEMU_OP_WAS_WRITTEN, &CheckOf<was_written>::run},
  };
  return kChecks;
}

}  // namespace rocemu::fuzz
