#include "emulator/cli/top/model.h"

#include <algorithm>
#include <map>

namespace rocemu::cli::top {
namespace {

constexpr double kPausedShare = 0.5;
constexpr double kNsPerS = 1e9;
constexpr std::uint32_t kMsnMask = 0xffffff;

// Growth says how fast counts have grown, and notes when one has gone back.
class Growth {
 public:
  Growth(double interval_s) : interval_s_(interval_s) {}

  double of(std::uint64_t before, std::uint64_t now) {
    if (now < before) went_back_ = true;
    return now < before ? 0 : static_cast<double>(now - before) / interval_s_;
  }
  double of(const Counts& before, const Counts& now, const char* name) {
    return of(count_of(before, name), count_of(now, name));
  }
  bool went_back() const { return went_back_; }

 private:
  double interval_s_;
  bool went_back_ = false;
};

Rates counter_rates(Growth& growth, const Counts& before, const Counts& now) {
  Rates rates;
  rates.retransmissions = growth.of(before, now, "retransmitted_frames");
  rates.rnrs =
      growth.of(before, now, "rnr_naks_sent") + growth.of(before, now, "rnr_naks_received");
  return rates;
}

std::optional<Rates> qp_rates(const QpReport& before, const QpReport& now, double interval_s) {
  Growth growth(interval_s);
  Rates rates = counter_rates(growth, before.counters, now.counters);
  rates.tx_bits = 8 * growth.of(before.counters, now.counters, "tx_payload_bytes");
  rates.rx_bits = 8 * growth.of(before.counters, now.counters, "rx_payload_bytes");
  growth.of(before.counters, now.counters, "tx_frames");
  if (growth.went_back()) return std::nullopt;
  const std::uint32_t completed = now.completed_requests - before.completed_requests;
  const std::uint32_t answered = (now.answered_messages - before.answered_messages) & kMsnMask;
  rates.messages = (static_cast<double>(completed) + answered) / interval_s;
  return rates;
}

std::optional<Rates> device_rates(const DeviceReport& before, const DeviceReport& now,
                                  double interval_s) {
  Growth growth(interval_s);
  Rates rates = counter_rates(growth, before.counters, now.counters);
  rates.tx_bits = 8 * growth.of(before.tx_bytes, now.tx_bytes);
  rates.rx_bits = 8 * growth.of(before.rx_bytes, now.rx_bytes);
  return growth.went_back() ? std::nullopt : std::optional(rates);
}

void add(std::optional<Rates>& sum, const std::optional<Rates>& rates) {
  if (!rates) return;
  if (!sum) sum.emplace();
  sum->tx_bits += rates->tx_bits;
  sum->rx_bits += rates->rx_bits;
  sum->messages += rates->messages;
  sum->retransmissions += rates->retransmissions;
  sum->rnrs += rates->rnrs;
}

std::string wait_of(const QpReport& qp, const std::vector<Device>& devices) {
  if (qp.waits_for != "window" && qp.waits_for != "answer") return qp.waits_for;
  for (const Device& device : devices)
    if (device.now.name == qp.device && device.paused_share.value_or(0) >= kPausedShare)
      return "pause";
  return qp.waits_for;
}

void add_devices(const Report* before, const Report& now, View& view) {
  for (const DeviceReport& device : now.devices) {
    Device shown{.now = device, .rates = {}, .paused_share = {}};
    const DeviceReport* earlier = nullptr;
    for (const DeviceReport& one : before != nullptr ? before->devices : now.devices)
      if (before != nullptr && one.name == device.name) earlier = &one;
    if (earlier != nullptr && view.interval_s > 0) {
      shown.rates = device_rates(*earlier, device, view.interval_s);
      Growth paused(view.interval_s * kNsPerS);
      shown.paused_share = std::min(1.0, paused.of(earlier->paused_ns, device.paused_ns));
    }
    view.devices.push_back(std::move(shown));
    const auto of_device = [&](const QpReport& qp) { return qp.device == device.name; };
    const auto listed = static_cast<std::uint64_t>(std::ranges::count_if(now.qps, of_device));
    if (device.qps > listed) view.qps_not_shown += device.qps - listed;
  }
}

void add_programs(View& view) {
  std::map<std::int64_t, Program> programs;
  for (const Qp& qp : view.qps) {
    Program& program = programs[qp.now.program];
    program.pid = qp.now.program;
    program.name = qp.program;
    ++program.qps;
    if (!qp.waits_for.empty() && qp.waits_for != "turn") ++program.waiting_qps;
    add(program.rates, qp.rates);
    const double age_us = qp.now.oldest_age_us.value_or(-1);
    if (age_us > program.oldest_age_us.value_or(-1)) {
      program.oldest_age_us = age_us;
      program.waits_for = qp.waits_for;
    } else if (program.waits_for.empty() && !program.oldest_age_us) {
      program.waits_for = qp.waits_for;
    }
  }
  for (auto& [pid, program] : programs) view.programs.push_back(std::move(program));
}

}  // namespace

View make_view(const Report* before, const Report& now, const NameOfProcess& name_of) {
  View view{.nic = now.name, .version = now.version, .pid = now.pid, .uptime_s = now.uptime_s};
  if (before != nullptr && now.uptime_s > before->uptime_s)
    view.interval_s = now.uptime_s - before->uptime_s;
  add_devices(before, now, view);

  std::map<std::pair<std::string, std::uint32_t>, const QpReport*> earlier;
  if (before != nullptr)
    for (const QpReport& qp : before->qps) earlier[{qp.device, qp.qpn}] = &qp;
  std::map<std::int64_t, std::string> names;
  for (const QpReport& qp : now.qps) {
    Qp shown{.now = qp, .program = {}, .rates = {}, .waits_for = wait_of(qp, view.devices)};
    if (qp.program != 0) {
      const auto [name, is_new] = names.try_emplace(qp.program);
      if (is_new) name->second = name_of(qp.program);
      shown.program = name->second;
    }
    const auto found = earlier.find({qp.device, qp.qpn});
    if (found != earlier.end() && view.interval_s > 0 && found->second->program == qp.program)
      shown.rates = qp_rates(*found->second, qp, view.interval_s);
    view.qps.push_back(std::move(shown));
  }
  add_programs(view);
  // A device's messages are the sum over its QPs.
  for (Device& device : view.devices)
    for (const Qp& qp : view.qps)
      if (device.rates && qp.rates && qp.now.device == device.now.name)
        device.rates->messages += qp.rates->messages;
  return view;
}

}  // namespace rocemu::cli::top
