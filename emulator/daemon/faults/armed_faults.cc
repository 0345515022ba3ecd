#include "emulator/daemon/faults/armed_faults.h"

#include <algorithm>

#include "emulator/fault/kinds.h"

namespace rocemu::daemon {
namespace {

using fault::Counted;
using fault::Kind;
using fault::Trigger;

constexpr auto kActive = Trigger::State::active;

// Adds what an active fault needs at its device.
void add_need(FaultNeeds& needs, const fault::Spec& spec) {
  switch (spec.what.kind) {
    case Kind::completion_late:
    case Kind::completion_status:
      needs.completions = true;
      break;
    case Kind::event_late:
    case Kind::event_lost:
      needs.events = true;
      break;
    case Kind::post_fails:
      needs.posts = true;
      break;
    case Kind::no_answer:
      needs.packets = true;
      break;
    case Kind::no_traffic:
      needs.drops_received |= spec.what.receive;
      needs.drops_sent |= spec.what.transmit;
      break;
    case Kind::port_down:
    case Kind::device_fatal:
      needs.drops_received = needs.drops_sent = true;
      break;
    case Kind::pause:
      needs.holds_received |= spec.what.receive;
      needs.holds_sent |= spec.what.transmit;
      break;
    case Kind::slow:
      if (spec.whom.everybody()) needs.rate_bits_per_s = spec.what.rate_bits_per_s;
      needs.rates |= !spec.whom.everybody();
      break;
    default:
      break;
  }
}

}  // namespace

bool ArmedFaults::knows(const std::string& device) const {
  return device == fault::kAllDevices || std::ranges::find(devices_, device) != devices_.end();
}

bool ArmedFaults::of_device(const fault::Spec& spec, uint32_t device) const {
  return spec.device == fault::kAllDevices || spec.device == devices_[device];
}

bool ArmedFaults::concerns(const fault::Spec& spec, const Who& who) const {
  const fault::Whom& whom = spec.whom;
  return of_device(spec, who.device) && (!whom.qpn || *whom.qpn == who.qpn) &&
         (!whom.pid || static_cast<pid_t>(*whom.pid) == who.program) &&
         (!whom.peer || whom.peer == who.peer) &&
         (whom.program.empty() || (who.program > 0 && whom.program == name_of_(who.program)));
}

std::vector<uint32_t> ArmedFaults::add(std::vector<fault::Spec> specs, TimeNs now_ns) {
  const std::lock_guard lock(mutex_);
  if (faults_.size() + specs.size() > kMax)
    std::erase_if(faults_,
                  [](const Armed& armed) { return armed.trigger.state() == Trigger::State::over; });
  if (faults_.size() + specs.size() > kMax) return {};
  std::vector<uint32_t> ids;
  for (fault::Spec& spec : specs) {
    Trigger trigger(spec.when, fault::row_of(spec.what.kind).nature, now_ns, nic_began_ns_);
    ids.push_back(next_id_);
    faults_.push_back({next_id_++, std::move(spec), std::move(trigger)});
  }
  return ids;
}

std::optional<std::vector<FaultChange>> ArmedFaults::remove(uint32_t id) {
  const std::lock_guard lock(mutex_);
  std::vector<FaultChange> ends;
  bool found = id == 0;
  std::erase_if(faults_, [&](const Armed& armed) {
    if (id != 0 && armed.id != id) return false;
    found = true;
    if (armed.trigger.state() == kActive) ends.push_back({armed.id, armed.spec, false});
    return true;
  });
  if (!found) return std::nullopt;
  return ends;
}

std::vector<FaultChange> ArmedFaults::on_time(TimeNs now_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<FaultChange> changes;
  for (Armed& armed : faults_)
    for (;;) {
      const Trigger::Change change = armed.trigger.on_time(now_ns);
      if (change == Trigger::Change::none) break;
      changes.push_back({armed.id, armed.spec, change == Trigger::Change::begins});
    }
  return changes;
}

TimeNs ArmedFaults::next_ns() const {
  const std::lock_guard lock(mutex_);
  TimeNs next = kNever;
  for (const Armed& armed : faults_) next = std::min(next, armed.trigger.next_ns());
  return next;
}

std::vector<FaultChange> ArmedFaults::on_count(Counted counted, const Who& who, TimeNs now_ns) {
  const std::lock_guard lock(mutex_);
  std::vector<FaultChange> changes;
  for (Armed& armed : faults_)
    if (armed.trigger.counts() == counted && concerns(armed.spec, who) &&
        armed.trigger.on_count(now_ns) == Trigger::Change::begins)
      changes.push_back({armed.id, armed.spec, true});
  return changes;
}

std::optional<fault::What> ArmedFaults::strike(Kind kind, const Who& who, const About& about) {
  const std::lock_guard lock(mutex_);
  std::optional<fault::What> struck;
  for (Armed& armed : faults_)
    if (armed.spec.what.kind == kind && armed.trigger.state() == kActive &&
        concerns(armed.spec, who) && about(armed.spec.what) && armed.trigger.on_event() && !struck)
      struck = armed.spec.what;
  return struck;
}

bool ArmedFaults::active(Kind kind, const Who& who) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(faults_, [&](const Armed& armed) {
    return armed.spec.what.kind == kind && armed.trigger.state() == kActive &&
           concerns(armed.spec, who);
  });
}

void ArmedFaults::for_each_active(uint32_t device,
                                  const std::function<void(const fault::Spec&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const Armed& armed : faults_)
    if (armed.trigger.state() == kActive && of_device(armed.spec, device)) visit(armed.spec);
}

FaultNeeds ArmedFaults::needs(uint32_t device) const {
  FaultNeeds needs;
  const std::lock_guard lock(mutex_);
  for (const Armed& armed : faults_) {
    if (!of_device(armed.spec, device)) continue;
    needs.requests |= armed.trigger.counts() == Counted::requests;
    needs.packets |= armed.trigger.counts() == Counted::packets;
    if (armed.trigger.state() == kActive) add_need(needs, armed.spec);
  }
  return needs;
}

bool ArmedFaults::any_of_calls() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(faults_, [](const Armed& armed) {
    const Kind kind = armed.spec.what.kind;
    return armed.trigger.state() == kActive &&
           (kind == Kind::call_fails || kind == Kind::call_slow || kind == Kind::post_fails);
  });
}

std::vector<ArmedFaults::Report> ArmedFaults::report() const {
  const std::lock_guard lock(mutex_);
  std::vector<Report> reports;
  for (const Armed& armed : faults_)
    reports.push_back({armed.id, armed.spec, armed.trigger.state(), armed.trigger.strikes()});
  return reports;
}

}  // namespace rocemu::daemon
