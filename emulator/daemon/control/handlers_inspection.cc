// Handlers by which the NIC tells a program's checker what it sees: verbs_shim/abi/inspect.h.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "emulator/daemon/control/conversions.h"
#include "emulator/daemon/control/handlers.h"

namespace rocemu::daemon::handlers {

namespace {

using inspection::FindingKind;

// The numbers are the ABI's.
static_assert(static_cast<uint32_t>(FindingKind::race) == ROCEMU_FOUND_RACE);
static_assert(static_cast<uint32_t>(FindingKind::processor_race) == ROCEMU_FOUND_PROCESSOR_RACE);
static_assert(static_cast<uint32_t>(FindingKind::key_gone) == ROCEMU_FOUND_KEY_GONE);
static_assert(static_cast<uint32_t>(FindingKind::memory_unmapped) == ROCEMU_FOUND_MEMORY_UNMAPPED);
static_assert(static_cast<uint32_t>(FindingKind::key_swapped) == ROCEMU_FOUND_KEY_SWAPPED);
static_assert(static_cast<uint32_t>(FindingKind::address_swapped) == ROCEMU_FOUND_ADDRESS_SWAPPED);
static_assert(static_cast<uint32_t>(FindingKind::own_key) == ROCEMU_FOUND_OWN_KEY);
static_assert(static_cast<uint32_t>(FindingKind::other_domain) == ROCEMU_FOUND_OTHER_DOMAIN);
static_assert(static_cast<uint32_t>(FindingKind::key_never_given) == ROCEMU_FOUND_KEY_NEVER_GIVEN);

uint32_t flag_if(bool condition, uint32_t flag) { return condition ? flag : 0; }

rocemu_inspect_qp_reply from_report(const inspection::QpReport& report) {
  const inspection::Meeting& meeting = report.meeting;
  rocemu_inspect_qp_reply body{};
  body.qp_num = report.qpn.value;
  body.flags = flag_if(meeting.met, ROCEMU_INSPECTED_MET) |
               flag_if(meeting.peer_has_begun, ROCEMU_INSPECTED_PEER_BEGAN) |
               flag_if(meeting.own_has_begun, ROCEMU_INSPECTED_BEGAN) |
               flag_if(report.receives.peer_had_none, ROCEMU_INSPECTED_RNR_EXCEEDED);
  body.receives_taken = report.receives.taken;
  body.receives_missing_before_first = report.receives.missing_before_first;
  body.receives_missing = report.receives.missing;
  body.swapped_peer = report.swapped_peer.value;
  body.waited_before_first_ns = static_cast<uint64_t>(report.waited_before_first_ns);
  body.waited_ns = static_cast<uint64_t>(report.waited_ns);
  body.own = from_qp_attr(meeting.own);
  body.peer = from_qp_attr(meeting.peers);
  std::ranges::copy(meeting.own_gid.bytes, body.own_gid);
  std::ranges::copy(meeting.peer_gid.bytes, body.peer_gid);
  body.peer_qp_num = meeting.peer.qpn.value;
  body.peer_device = meeting.peer.device;
  return body;
}

rocemu_nic_finding from_finding(const inspection::Finding& finding) {
  rocemu_nic_finding body{};
  body.kind = static_cast<uint32_t>(finding.kind);
  body.flags = flag_if(finding.role == inspection::Role::owner, ROCEMU_FOUND_AS_OWNER) |
               flag_if(finding.known, ROCEMU_FOUND_REQUEST_KNOWN) |
               flag_if(finding.other_is_mine, ROCEMU_FOUND_OTHER_IS_MINE);
  body.qp_num = finding.qp.qpn.value;
  body.other_qp_num = finding.other.qpn.value;
  body.other_device = finding.other.device;
  body.rkey = finding.key;
  body.wr_id = finding.wr_id;
  body.other_wr_id = finding.other_wr_id;
  body.opcode = wr_opcode_of(finding.opcode);
  body.other_opcode = wr_opcode_of(finding.other_opcode);
  body.address = finding.address;
  body.length_bytes = finding.length_bytes;
  body.left = finding.left;
  body.found = finding.found;
  return body;
}

}  // namespace

void inspect_qp(SessionCore& session, uint32_t qp) {
  inspection::Inspection* const inspection = session.host().inspection;
  if (inspection == nullptr) return session.refuse(EOPNOTSUPP);
  session.on_context(
      [inspection, device = session.device_index(), qp](EngineContext& context) {
        return inspection->describe_qp(device, context.id(), qp);
      },
      [&session](const inspection::QpReport& report) { session.answer(from_report(report)); });
}

void take_findings(SessionCore& session) {
  inspection::Inspection* const inspection = session.host().inspection;
  if (inspection == nullptr) return session.refuse(EOPNOTSUPP);
  session.on_context(
      [inspection, device = session.device_index()](EngineContext& context) {
        return device::Result<std::vector<inspection::Finding>>(
            inspection->take_findings(device, context.id(), ROCEMU_FINDINGS_MAX));
      },
      [&session](const std::vector<inspection::Finding>& findings) {
        rocemu_take_findings_reply body{};
        body.count = static_cast<uint32_t>(findings.size());
        std::ranges::transform(findings, std::begin(body.findings), from_finding);
        session.answer(body);
      });
}

void was_written(SessionCore& session, const rocemu_was_written& message) {
  inspection::Inspection* const inspection = session.host().inspection;
  if (inspection == nullptr) return session.refuse(EOPNOTSUPP);
  session.on_context(
      [inspection, device = session.device_index(), address = message.address,
       bytes = message.bytes](EngineContext& context) {
        return device::Result<bool>(
            inspection->may_be_written(device, context.id(), address, bytes));
      },
      [&session](bool may_be) {
        rocemu_was_written_reply body{};
        body.was_written = may_be ? 1 : 0;
        session.answer(body);
      });
}

}  // namespace rocemu::daemon::handlers
