#include "emulator/daemon/faults/fault_injector.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/monotonic_clock.h"
#include "base/program_name.h"
#include "emulator/daemon/faults/call_names.h"
#include "emulator/daemon/faults/port_overlay.h"
#include "emulator/fault/grammar.h"
#include "emulator/fault/kinds.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

using fault::Kind;
using fault::What;

std::vector<std::string> names_of(const std::vector<device::HcaConfig>& devices) {
  std::vector<std::string> names;
  for (const device::HcaConfig& device : devices) names.push_back(device.name);
  return names;
}

const char* to_text(fault::Trigger::State state) {
  switch (state) {
    case fault::Trigger::State::waiting:
      return "waiting";
    case fault::Trigger::State::active:
      return "active";
    case fault::Trigger::State::over:
      break;
  }
  return "over";
}

}  // namespace

FaultInjector::FaultInjector(boost::asio::io_context& io, Engine& engine,
                             const std::vector<device::HcaConfig>& devices, TimeNs nic_began_ns,
                             ShowPort show_port, TellLoss tell_loss)
    : io_(io),
      engine_(engine),
      show_port_(std::move(show_port)),
      tell_loss_(std::move(tell_loss)),
      names_(program_name, monotonic_now_ns),
      armed_(names_of(devices), nic_began_ns, [this](pid_t pid) { return names_.of(pid); }),
      last_lost_(devices.size()),
      timer_(io),
      self_(std::make_shared<FaultInjector*>(this)) {
  for (uint32_t i = 0; i < devices.size(); ++i)
    devices_.push_back(std::make_unique<DeviceFaults>(engine.hca(i), engine.frames(i), armed_,
                                                      static_cast<FaultSource&>(*this)));
}

FaultInjector::~FaultInjector() { *self_ = nullptr; }

device::Result<std::vector<uint32_t>> FaultInjector::add(const std::string& text) {
  fault::ParsedFaults parsed = fault::parse_faults(text);
  if (!parsed.error.empty()) return tl::unexpected(EINVAL);
  if (!armed_.knows(parsed.faults.front().device)) return tl::unexpected(ENODEV);
  std::vector<uint32_t> ids = armed_.add(std::move(parsed.faults), monotonic_now_ns());
  if (ids.empty()) return tl::unexpected(ENOSPC);
  advance();
  return ids;
}

int FaultInjector::clear(uint32_t id) {
  const auto ends = armed_.remove(id);
  if (!ends) return ENOENT;
  carry_out(*ends);
  return 0;
}

std::string FaultInjector::report() const {
  auto all = nlohmann::ordered_json::array();
  for (const ArmedFaults::Report& fault : armed_.report()) {
    nlohmann::ordered_json entry = {{"id", fault.id},
                                    {"device", fault.spec.device},
                                    {"fault", fault::row_of(fault.spec.what.kind).name},
                                    {"text", fault::to_text(fault.spec)},
                                    {"state", to_text(fault.state)},
                                    {"strikes", fault.strikes}};
    if (!fault.spec.quirks.empty()) entry["quirks"] = fault.spec.quirks;
    all.push_back(std::move(entry));
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

device::PortConfig FaultInjector::seen(uint32_t device, const device::PortConfig& port) const {
  return with_faults(armed_, device, port);
}

// Faults that have become due begin and end here, and the timer waits for the next.
void FaultInjector::advance() {
  carry_out(armed_.on_time(monotonic_now_ns()));
  const TimeNs next = armed_.next_ns();
  if (next == kNever) return void(timer_.cancel());
  const TimeNs now = monotonic_now_ns();
  timer_.expires_after(std::chrono::nanoseconds(next > now ? next - now : 0));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) advance();
  });
}

// The port's news first: a program that gets an event finds them there.
void FaultInjector::carry_out(const std::vector<FaultChange>& changes) {
  for (const FaultChange& change : changes) {
    spdlog::info("fault {} {}: {}", change.id, change.begins ? "begins" : "ends",
                 fault::to_text(change.spec));
    // Whoever asked for it has the answer first.
    if (change.begins && change.spec.what.kind == Kind::kill)
      on_control([] { ::kill(::getpid(), SIGKILL); });
  }
  for (uint32_t i = 0; i < devices_.size(); ++i) show_port_(i);
  engine_.post(Task([this, changes] {
    for (const FaultChange& change : changes)
      for (uint32_t i = 0; i < devices_.size(); ++i) {
        const std::string& device = change.spec.device;
        if (!change.begins ||
            (device != fault::kAllDevices && device != engine_.hca(i).config().name))
          continue;
        devices_[i]->begin(change.spec);
        last_lost_[i].store(devices_[i]->last_lost());
      }
    for (const auto& device : devices_) device->follow(engine_.clock().now_ns());
  }));
  follow();
  tell_losses(changes);
}

// Behind the engine's part: what the connection manager sends for ids that go is lost with the
// device.
void FaultInjector::tell_losses(const std::vector<FaultChange>& changes) {
  for (const FaultChange& change : changes) {
    if (change.spec.what.kind != Kind::device_fatal) continue;
    for (uint32_t i = 0; i < devices_.size(); ++i)
      if (armed_.concerns(change.spec, {i}))
        tell_loss_(i, change.begins || armed_.active(Kind::device_fatal, {i}));
  }
}

// Finds out whether calls and posts of programs have to be looked at.
void FaultInjector::follow() {
  bool needed = armed_.any_of_calls() ||
                std::ranges::any_of(last_lost_, [](const auto& last) { return last.load() != 0; });
  bool posts = false;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const FaultNeeds needs = armed_.needs(i);
    needed |= needs.completions || needs.requests || needs.events || needs.rates ||
              armed_.active(Kind::device_fatal, {i});
    posts |= needs.posts;
  }
  gate_needed_.store(needed, std::memory_order_relaxed);
  engine_.post(Task([this, posts] { engine_.ask_for_attention(posts); }));
}

OperationGate::Verdict FaultInjector::on_operation(const Asked& asked) {
  const bool opens = asked.operation == ROCEMU_OP_HELLO;
  const Who who{.device = asked.device, .program = asked.program};
  if (opens && armed_.active(Kind::device_fatal, who)) return {ENODEV, 0};
  if (asked.context && *asked.context <= last_lost_[asked.device].load())
    return {gives_up(asked.operation) ? 0 : EIO, 0};
  const std::string_view call = call_name(asked.operation);
  if (call.empty()) return {};
  const auto about = [&](const What& what) {
    return what.call == fault::kAny || what.call == call;
  };
  if (const auto fails = strike(Kind::call_fails, who, about)) return {fails->error, 0};
  const auto slow = strike(Kind::call_slow, who, about);
  return {0, slow ? slow->delay_ns : 0};
}

void FaultInjector::wait(TimeNs delay_ns, std::function<void()> go_on) {
  auto timer = std::make_shared<boost::asio::steady_timer>(io_);
  timer->expires_after(std::chrono::nanoseconds(delay_ns));
  timer->async_wait(
      [timer, go_on = std::move(go_on)](const boost::system::error_code&) { go_on(); });
}

// Objects that the call has made get the taps that others have.
void FaultInjector::passed(const Asked& asked) {
  if (call_name(asked.operation).empty()) return;
  engine_.post(Task(
      [this, device = devices_[asked.device].get()] { device->follow(engine_.clock().now_ns()); }));
}

OperationGate::PostVerdict FaultInjector::on_post(const Asked& asked, wire::Qpn qpn, bool receive) {
  const Who who{.device = asked.device, .qpn = qpn.value, .program = asked.program};
  const auto fails = strike(Kind::post_fails, who, [&](const What& what) {
    return what.queue == fault::kAny || what.queue == (receive ? "receive" : "send");
  });
  return {fails ? fails->error : 0, armed_.needs(asked.device).posts};
}

TimeNs FaultInjector::now_ns() const { return monotonic_now_ns(); }

std::optional<What> FaultInjector::strike(Kind kind, const Who& who,
                                          const ArmedFaults::About& about) {
  auto struck = armed_.strike(kind, who, about);
  // It may have been its last.
  if (struck && !armed_.active(kind, who)) on_control([this] { carry_out({}); });
  return struck;
}

bool FaultInjector::active(Kind kind, const Who& who) const { return armed_.active(kind, who); }

// A QP that is to fail by this request fails by it, and no other QP of the fault does.
std::optional<transport::WcStatus> FaultInjector::on_request(const Who& who) {
  std::vector<FaultChange> changes =
      armed_.on_count(fault::Counted::requests, who, monotonic_now_ns());
  if (changes.empty()) return std::nullopt;
  std::optional<transport::WcStatus> status;
  for (const FaultChange& change : changes)
    if (change.spec.what.kind == Kind::qp_error)
      status = static_cast<transport::WcStatus>(change.spec.what.status);
  std::erase_if(changes,
                [](const auto& change) { return change.spec.what.kind == Kind::qp_error; });
  on_control([this, changes = std::move(changes)] {
    carry_out(changes);
    advance();
  });
  return status;
}

void FaultInjector::on_packet(const Who& who) {
  std::vector<FaultChange> changes =
      armed_.on_count(fault::Counted::packets, who, monotonic_now_ns());
  if (changes.empty()) return;
  on_control([this, changes = std::move(changes)] {
    carry_out(changes);
    advance();
  });
}

void FaultInjector::show_at(uint32_t device, TimeNs when_ns) {
  on_control([this, device, when_ns] {
    run_at(when_ns, [this, device] {
      engine_.post(Task([faults = devices_[device].get()] { faults->touch_rings(); }));
    });
  });
}

void FaultInjector::send_at(const LateEvent& event, TimeNs when_ns) {
  on_control([this, event, when_ns] {
    run_at(when_ns, [this, event] {
      engine_.post(Task([faults = devices_[event.device].get(), event] { faults->send(event); }));
    });
  });
}

void FaultInjector::on_control(std::function<void()> work) {
  boost::asio::post(io_, [self = self_, work = std::move(work)] {
    if (*self != nullptr) work();
  });
}

void FaultInjector::run_at(TimeNs when_ns, std::function<void()> work) {
  const TimeNs now = monotonic_now_ns();
  wait(when_ns > now ? when_ns - now : 0, [self = self_, work = std::move(work)] {
    if (*self != nullptr) work();
  });
}

}  // namespace rocemu::daemon
