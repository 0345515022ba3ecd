// The inspector of one device: it hears of each packet from the transport, of accesses from the
// memory and of requests from the QPs' queues, and puts them together.
//
// Only the engine thread calls it. None of its calls fails or calls back into the transport; when
// the NIC inspects, devices have their turns one after the other, as an inspector looks at the
// records of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/device/hca.h"
#include "emulator/inspection/access_log.h"
#include "emulator/inspection/atomic_words.h"
#include "emulator/inspection/findings.h"
#include "emulator/inspection/key_faults.h"
#include "emulator/inspection/qp_record.h"
#include "emulator/inspection/step.h"
#include "emulator/inspection/written_ranges.h"
#include "emulator/transport/interface/observer.h"

namespace rocemu::inspection {

class Inspector;
// The inspectors of a NIC, by the index of their device.
using Inspectors = std::vector<Inspector*>;

class Inspector final : public transport::Observer {
 public:
  // `all` are those of the NIC, which outlive this one, and this one among them once it is made.
  Inspector(uint32_t device, const Inspectors& all, Clock& clock);

  // Called before anything else. The table is the device's own; `hca` outlives this.
  void watch(device::MemoryRegions& regions);
  void watch(const device::Hca& hca) { hca_ = &hca; }

  // Called by the queues. `record` is theirs, and known from add() to remove().
  void add(QpRecord& record) { records_[record.qpn.value] = &record; }
  void remove(QpRecord& record);
  void note_state(QpRecord& record, transport::QpState state);
  void on_taken(QpRecord& record, const transport::SendWork& work);
  void on_released(QpRecord& record, uint32_t count);

  // Called by the memory. The range that is granted may be a whole message, of which a part is
  // moved then.
  void on_remote_access(const RefusedAccess& asked, uint32_t access,
                        const transport::MemoryRange& range);
  void on_refused_access(const RefusedAccess& asked) { refused_ = asked; }
  void on_scatter(const transport::MemoryRange& range, std::span<const std::byte> bytes);
  void on_local_write(const transport::MemoryRange& range, uint32_t length_bytes) {
    words_.on_write(range.space, range.address, length_bytes);
  }
  void on_atomic(const transport::MemoryRange& range, uint64_t before, uint64_t after);

  // transport::Observer
  void on_event(wire::Qpn qpn, transport::TraceEvent event, uint32_t value) noexcept override;
  void on_refusal(wire::Qpn qpn, transport::Refusal refusal, uint32_t psn) noexcept override;

  // Null when there is none of that number.
  QpRecord* find(wire::Qpn qpn) const;
  Findings& findings() { return findings_; }
  const WrittenRanges& written() const { return written_; }
  const device::Hca* hca() const { return hca_; }
  const device::MemoryRegions* regions() const { return regions_; }
  bool has_address(const wire::Gid& gid) const;

 private:
  // An access by a peer that has passed its check, and is to be made.
  struct Expected {
    QpRecord* record = nullptr;  // null: there is none
    uint64_t address = 0;
    uint64_t asked_address = 0;  // as the request named it
    uint32_t key = 0;
  };

  void note_packet(QpRecord& record, uint32_t psn);
  void meet(QpRecord& record);
  void note_beginning(QpRecord& record);
  std::optional<QpPlace> find_peer(const QpRecord& record) const;
  QpRecord* record_of(const QpPlace& place) const;
  const Request* request_of(const CarriedOut& carried_out) const;
  void note_access(const Expected& made, AccessKind kind, const transport::MemoryRange& range,
                   uint32_t length_bytes, uint64_t content);
  void tell_race(const Access& access, const Access& other, const Expected& made);
  void tell_refused(QpRecord& record, FindingKind kind);
  void tell(const QpPlace& requester, const Finding& finding);
  Step when_over(const Access& read) const;

  const uint32_t device_;
  const Inspectors& all_;
  Clock& clock_;
  device::MemoryRegions* regions_ = nullptr;
  const device::Hca* hca_ = nullptr;
  std::unordered_map<uint32_t, QpRecord*> records_;
  Requests::Room room_;
  AccessLog accesses_;
  AtomicWords words_;
  WrittenRanges written_;
  GoneKeys gone_;
  Findings findings_;
  RefusedAccess refused_;
  Expected expected_;
};

}  // namespace rocemu::inspection
