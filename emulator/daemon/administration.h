// Administration is what control connections ask of the whole NIC: its status, put together from
// what each part tells of itself, its links, and its end.
#pragma once

#include "emulator/daemon/control/session_host.h"
#include "emulator/daemon/nic.h"

namespace rocemu::daemon {

class Administration final : public NicAdministration {
 public:
  // `nic` outlives it and its reports.
  explicit Administration(const Nic& nic) : nic_(nic) {}

  Report take_status() override;
  Report take_metrics() override;
  Report take_links() override;
  bool has_links() const override { return !nic_.ports.empty(); }
  device::Result<Change> set_links(pid_t asked_by, const char* assignment) override;
  void shut_down() override { nic_.shut_down(); }
  device::Result<AddedFaults> add_faults(pid_t asked_by, const char* text) override;
  int clear_fault(uint32_t id) override;
  device::Result<std::string> faults() override;
  void list_cm_ids(uint32_t device, uint32_t from, rocemu_resources& reply) override;
  uint32_t count_cm_ids(uint32_t device) override;
  NamedCounters name_counters(const transport::Counters& counters) override;
  int start_trace(pid_t asked_by, UniqueFd file, const char* filter, uint64_t max_bytes) override;
  int stop_trace(std::function<void(const TraceEnd&)> ended) override;

 private:
  const Nic& nic_;
};

}  // namespace rocemu::daemon
