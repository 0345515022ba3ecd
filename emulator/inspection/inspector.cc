#include "emulator/inspection/inspector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/transport/responder/refusals.h"

namespace rocemu::inspection {

using transport::Refusal;
using transport::TraceEvent;
using transport::WorkOpcode;

Inspector::Inspector(uint32_t device, const Inspectors& all, Clock& clock)
    : device_(device),
      all_(all),
      clock_(clock),
      accesses_([this](const Access& read) { return when_over(read); }) {}

void Inspector::watch(device::MemoryRegions& regions) {
  regions_ = &regions;
  regions.tell_gone([this](uint32_t key) { gone_.add(key); });
}

QpRecord* Inspector::find(wire::Qpn qpn) const {
  const auto found = records_.find(qpn.value);
  return found == records_.end() ? nullptr : found->second;
}

void Inspector::remove(QpRecord& record) {
  if (expected_.record == &record) expected_ = {};
  if (find(record.qpn) == &record) records_.erase(record.qpn.value);
  record.requests.give_back(room_);
}

void Inspector::on_taken(QpRecord& record, const transport::SendWork& work) {
  record.requests.on_taken(work, clock_.next(), room_);
}

void Inspector::on_released(QpRecord& record, uint32_t count) {
  record.requests.on_released(count, clock_.next());
}

bool Inspector::has_address(const wire::Gid& gid) const {
  return hca_ != nullptr && gid != wire::Gid{} &&
         std::ranges::any_of(hca_->config().port.gids,
                             [&](const device::GidEntry& entry) { return entry.gid == gid; });
}

QpRecord* Inspector::record_of(const QpPlace& place) const {
  return place.device < all_.size() ? all_[place.device]->find(place.qpn) : nullptr;
}

// --- Both ends of a connection ---

// The QP that this one is connected to, and that is connected to this one.
std::optional<QpPlace> Inspector::find_peer(const QpRecord& record) const {
  const auto own = hca_->describe_qp(record.qpn);
  if (!own || own->attr.dest_qp_num == 0) return std::nullopt;
  for (uint32_t i = 0; i < all_.size(); ++i) {
    if (!all_[i]->has_address(own->attr.ah.dgid)) continue;
    const wire::Qpn qpn{own->attr.dest_qp_num};
    const auto peer = all_[i]->hca()->describe_qp(qpn);
    if (!peer || peer->attr.dest_qp_num != record.qpn.value) return std::nullopt;
    if (!has_address(peer->attr.ah.dgid)) return std::nullopt;
    return QpPlace{i, qpn};
  }
  return std::nullopt;
}

// Notes, in both records, what both ends were set to.
void Inspector::meet(QpRecord& record) {
  record.looked_for_peer = true;
  const auto place = find_peer(record);
  if (!place) return;
  const auto own = hca_->describe_qp(record.qpn);
  const auto peer = all_[place->device]->hca()->describe_qp(place->qpn);
  record.meeting = {true, own->attr, own->local_gid, *place, peer->attr, peer->local_gid};
  QpRecord* const there = record_of(*place);
  if (there == nullptr || there->meeting.met) return;
  there->meeting = {true,      peer->attr,    peer->local_gid, {device_, record.qpn},
                    own->attr, own->local_gid};
}

// An end that was in RTR when they met has got the rest of its attributes.
void Inspector::note_state(QpRecord& record, transport::QpState state) {
  if (state != transport::QpState::ready_to_send || !record.meeting.met) return;
  const auto own = hca_->describe_qp(record.qpn);
  if (!own) return;
  record.meeting.own = own->attr;
  QpRecord* const peer = record_of(record.meeting.peer);
  if (peer != nullptr && peer->meeting.peer == QpPlace{device_, record.qpn})
    peer->meeting.peers = own->attr;
}

// The first packet of the peer has come.
void Inspector::note_beginning(QpRecord& record) {
  if (std::exchange(record.meeting.peer_has_begun, true)) return;
  QpRecord* const peer = record_of(record.meeting.peer);
  if (peer != nullptr && peer->meeting.peer == QpPlace{device_, record.qpn})
    peer->meeting.own_has_begun = true;
}

void Inspector::on_event(wire::Qpn qpn, TraceEvent event, uint32_t value) noexcept {
  switch (event) {
    case TraceEvent::delivered:
      if (QpRecord* const record = find(qpn)) note_packet(*record, value);
      break;
    case TraceEvent::rnr_nak_sent:
    case TraceEvent::no_receive:
      if (QpRecord* const record = find(qpn)) record->receives.note_missing();
      break;
    case TraceEvent::completion_with_error:
      if (value != static_cast<uint32_t>(transport::WcStatus::rnr_retry_exceeded_error)) break;
      if (QpRecord* const record = find(qpn)) record->receives.peer_had_none = true;
      break;
    default:
      break;
  }
}

void Inspector::note_packet(QpRecord& record, uint32_t psn) {
  if (!record.meeting.met && !record.looked_for_peer) meet(record);
  if (record.meeting.met && psn == record.meeting.peers.sq_psn) note_beginning(record);
  record.carried_out.may_begin = true;
  refused_ = {};
  expected_ = {};
}

// --- Accesses to memory ---

const Request* Inspector::request_of(const CarriedOut& carried_out) const {
  const QpRecord* const requester = record_of(carried_out.requester);
  return requester == nullptr ? nullptr : requester->requests.find(carried_out.number);
}

Step Inspector::when_over(const Access& read) const {
  const QpRecord* const requester = record_of(read.requester);
  const Request* const request =
      requester == nullptr ? nullptr : requester->requests.find(read.request);
  return request == nullptr ? read.made : request->over;
}

namespace {

WorkOpcode kind_of(uint32_t access) {
  if ((access & transport::kRemoteAtomic) != 0) return WorkOpcode::fetch_add;
  return (access & transport::kRemoteRead) != 0 ? WorkOpcode::read : WorkOpcode::write;
}

// The packets of a WRITE come one by one, and one that found no receive for its immediate again.
bool is_rest_of(const Request& write, uint32_t written_bytes, const RefusedAccess& asked) {
  return transport::is_write(write.opcode) && written_bytes < write.length_bytes &&
         asked.key == write.key && asked.address == write.address + written_bytes;
}

}  // namespace

void Inspector::on_remote_access(const RefusedAccess& asked, uint32_t access,
                                 const transport::MemoryRange& range) {
  if ((access & (transport::kRemoteWrite | transport::kRemoteAtomic)) != 0)
    written_.add(range.space, range.address, asked.length_bytes);
  QpRecord* const record = find(asked.qpn);
  if (record == nullptr) return;
  CarriedOut& carried_out = record->carried_out;
  const WorkOpcode kind = kind_of(access);
  const bool may_begin = std::exchange(carried_out.may_begin, false);
  const Request* under_way = request_of(carried_out);
  const bool goes_on = kind == WorkOpcode::write && under_way != nullptr &&
                       is_rest_of(*under_way, carried_out.written_bytes, asked);
  if (may_begin && !goes_on) {
    carried_out = {.requester = record->meeting.peer};
    QpRecord* const requester = record->meeting.met ? record_of(record->meeting.peer) : nullptr;
    under_way = requester == nullptr
                    ? nullptr
                    : requester->requests.begin(kind, asked.key, asked.address, asked.length_bytes);
    if (under_way == nullptr && requester != nullptr && kind == WorkOpcode::write)
      under_way = requester->requests.begin(WorkOpcode::atomic_write, asked.key, asked.address,
                                            asked.length_bytes);
    if (under_way != nullptr) carried_out.number = under_way->number;
  }
  const Expected now{record, range.address, asked.address, asked.key};
  if (kind == WorkOpcode::read) {
    if (may_begin) note_access(now, AccessKind::read, range, asked.length_bytes, 0);
  } else {
    expected_ = now;
  }
}

void Inspector::on_scatter(const transport::MemoryRange& range, std::span<const std::byte> bytes) {
  words_.on_write(range.space, range.address, bytes.size());
  const Expected made = std::exchange(expected_, {});
  if (made.record == nullptr || made.address != range.address) return;
  uint64_t content = 0;
  std::memcpy(&content, bytes.data(), std::min(bytes.size(), sizeof(content)));
  const auto length_bytes = static_cast<uint32_t>(bytes.size());
  made.record->carried_out.written_bytes += length_bytes;
  note_access(made, AccessKind::write, range, length_bytes, content);
}

void Inspector::on_atomic(const transport::MemoryRange& range, uint64_t before, uint64_t after) {
  const Expected made = std::exchange(expected_, {});
  const bool is_known = made.record != nullptr && made.address == range.address;
  const Request* const request = is_known ? request_of(made.record->carried_out) : nullptr;
  if (is_known) note_access(made, AccessKind::atomic, range, transport::kAtomicBytes, after);
  const auto left = words_.on_atomic(range.space, range.address, before, after,
                                     request == nullptr ? 0 : request->taken, clock_.next());
  if (!left || request == nullptr) return;
  Finding finding;
  finding.kind = FindingKind::processor_race;
  finding.other = {device_, made.record->qpn};
  finding.known = true;
  finding.wr_id = request->wr_id;
  finding.opcode = request->opcode;
  finding.key = made.key;
  finding.address = made.asked_address;
  finding.length_bytes = transport::kAtomicBytes;
  finding.left = *left;
  finding.found = before;
  tell(made.record->carried_out.requester, finding);
}

void Inspector::note_access(const Expected& made, AccessKind kind,
                            const transport::MemoryRange& range, uint32_t length_bytes,
                            uint64_t content) {
  const CarriedOut& carried_out = made.record->carried_out;
  const Request* const request = request_of(carried_out);
  if (request == nullptr) return;
  const Access access{
      .kind = request->opcode == WorkOpcode::atomic_write ? AccessKind::atomic : kind,
      .fenced = request->fence,
      .space = range.space,
      .address = range.address,
      .length_bytes = length_bytes,
      .content = content,
      .requester = carried_out.requester,
      .request = request->number,
      .taken = request->taken,
      .made = clock_.next()};
  if (const auto other = accesses_.add(access)) tell_race(access, *other, made);
}

// --- What is told ---

void Inspector::tell(const QpPlace& requester, const Finding& finding) {
  if (requester.device >= all_.size()) return;
  Inspector& there = *all_[requester.device];
  const auto description = there.hca_->describe_qp(requester.qpn);
  if (!description) return;
  Finding told = finding;
  told.qp = requester;
  there.findings_.add(description->context, told);
}

// Both requesters hear of it.
void Inspector::tell_race(const Access& access, const Access& other, const Expected& made) {
  const auto find_request = [&](const Access& of) {
    const QpRecord* const record = record_of(of.requester);
    return record == nullptr ? nullptr : record->requests.find(of.request);
  };
  const auto owner = [&](const QpPlace& place) {
    return all_[place.device]->hca_->describe_qp(place.qpn);
  };
  const Request* const first = find_request(other);
  const Request* const second = find_request(access);
  const auto owner_of_first = owner(other.requester);
  const auto owner_of_second = owner(access.requester);
  Finding finding;
  finding.kind = FindingKind::race;
  finding.key = made.key;
  const uint64_t begin = std::max(access.address, other.address);
  const uint64_t end =
      std::min(access.address + access.length_bytes, other.address + other.length_bytes);
  finding.address = made.asked_address + (begin - access.address);
  finding.length_bytes = end - begin;
  finding.other_is_mine = owner_of_first && owner_of_second &&
                          access.requester.device == other.requester.device &&
                          owner_of_first->context == owner_of_second->context;
  const auto tell_one = [&](const Access& mine, const Request* request, const Access& theirs,
                            const Request* their_request) {
    Finding told = finding;
    told.other = theirs.requester;
    told.known = request != nullptr && their_request != nullptr;
    if (told.known) {
      told.wr_id = request->wr_id;
      told.opcode = request->opcode;
      told.other_wr_id = their_request->wr_id;
      told.other_opcode = their_request->opcode;
    }
    tell(mine.requester, told);
  };
  tell_one(access, second, other, first);
  if (!finding.other_is_mine) tell_one(other, first, access, second);
}

void Inspector::on_refusal(wire::Qpn qpn, Refusal refusal, uint32_t /*psn*/) noexcept {
  if (refusal != Refusal::bad_rkey && refusal != Refusal::remote_memory_lost) return;
  QpRecord* const record = find(qpn);
  if (record == nullptr || regions_ == nullptr) return;
  if (refused_.qpn != qpn) {
    if (refusal == Refusal::remote_memory_lost) tell_refused(*record, FindingKind::memory_unmapped);
    return;
  }
  KeyTables tables{*regions_, gone_};
  if (record->meeting.met) {
    const Inspector& there = *all_[record->meeting.peer.device];
    const auto peer = there.hca_->describe_qp(record->meeting.peer.qpn);
    if (peer) tables.requester = there.regions_;
    if (peer) tables.requester_pd = peer->pd;
  }
  if (const auto kind = explain(refused_, tables)) tell_refused(*record, *kind);
  refused_ = {};
}

// The requester hears of it when it is this NIC's; whose the memory was, when it is gone or when
// nobody else hears.
void Inspector::tell_refused(QpRecord& record, FindingKind kind) {
  const bool is_gone = kind == FindingKind::key_gone || kind == FindingKind::memory_unmapped;
  const QpPlace here{device_, record.qpn};
  Finding finding;
  finding.kind = kind;
  if (kind != FindingKind::memory_unmapped) {
    finding.key = refused_.key;
    finding.address = refused_.address;
    finding.length_bytes = refused_.length_bytes;
  }
  if (record.meeting.met) {
    finding.other = here;
    finding.role = Role::requester;
    tell(record.meeting.peer, finding);
    if (!is_gone) return;
  }
  finding.other = record.meeting.peer;
  finding.role = Role::owner;
  tell(here, finding);
}

}  // namespace rocemu::inspection
