#include "emulator/congestion/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "emulator/congestion/include/rocemu/congestion.h"

namespace rocemu::congestion {
namespace {

constexpr uint32_t kMaxParameters = 64;
constexpr uint32_t kMaxValues = 32;
constexpr TimeNs kMinTimerNs = 1'000;
constexpr const char* kEntry = "rocemu_congestion";

static_assert(ROCEMU_NEVER == kNever && ROCEMU_UNLIMITED == kUnlimited);
static_assert(sizeof(rocemu_hop) == sizeof(HopTelemetry) &&
              offsetof(rocemu_hop, queue_bytes) == offsetof(HopTelemetry, queue_bytes) &&
              offsetof(rocemu_hop, tx_bytes) == offsetof(HopTelemetry, tx_bytes) &&
              offsetof(rocemu_hop, timestamp_ns) == offsetof(HopTelemetry, timestamp_ns) &&
              offsetof(rocemu_hop, link_rate_bps) == offsetof(HopTelemetry, link_rate_bps));

// True when `text` can name an algorithm, a parameter or a value.
bool is_name(const char* text) {
  if (text == nullptr) return false;
  const std::string_view name(text);
  return !name.empty() && name.size() <= 32 && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

class Foreign final : public Algorithm {
 public:
  // Takes `state`, which is not null.
  Foreign(const rocemu_algorithm& functions, void* state) : f_(functions), state_(state) {}
  ~Foreign() override { f_.destroy(state_); }

  void on_sent(TimeNs now, uint32_t bytes) override {
    if (f_.on_sent != nullptr) f_.on_sent(state_, now, bytes);
  }
  void on_acknowledged(const Acknowledgement& heard) override {
    if (f_.on_acknowledged == nullptr) return;
    const rocemu_acknowledgement told{
        .now_ns = heard.now,
        .bytes = heard.bytes,
        .in_flight_bytes = heard.in_flight_bytes,
        .rtt_ns = heard.rtt_ns.value_or(ROCEMU_NEVER),
        .packets = heard.packets,
        .ecn_echo = heard.ecn_echo,
        .hops = reinterpret_cast<const rocemu_hop*>(heard.hops.data()),
        .hop_count = static_cast<uint32_t>(heard.hops.size()),
        .hops_passed = heard.hops_passed,
        .path = heard.path};
    f_.on_acknowledged(state_, &told);
  }
  void on_cnp(TimeNs now) override { call(f_.on_cnp, now); }
  void on_loss(TimeNs now) override { call(f_.on_loss, now); }
  void on_timeout(TimeNs now) override { call(f_.on_timeout, now); }
  void on_timer(TimeNs now) override {
    call(f_.on_timer, now);
    earliest_ = now + kMinTimerNs;
  }
  // One that stands still after its timer would have the NIC do nothing else.
  TimeNs deadline() const override {
    return f_.deadline == nullptr ? kNever : std::max(f_.deadline(state_), earliest_);
  }
  uint64_t rate_bps() const override {
    return f_.rate_bps == nullptr ? kUnlimited : f_.rate_bps(state_);
  }
  uint64_t window_bytes() const override {
    return f_.window_bytes == nullptr ? kUnlimited : f_.window_bytes(state_);
  }
  std::vector<NamedValue> view(TimeNs now) const override {
    std::vector<NamedValue> shown;
    if (f_.view == nullptr) return shown;
    std::array<rocemu_value, kMaxValues> values{};
    const uint32_t count = std::min(f_.view(state_, now, values.data(), kMaxValues), kMaxValues);
    for (uint32_t i = 0; i < count; ++i)
      if (is_name(values[i].name)) shown.push_back({values[i].name, values[i].value});
    return shown;
  }

 private:
  void call(void (*function)(void*, uint64_t), TimeNs now) {
    if (function != nullptr) function(state_, now);
  }

  const rocemu_algorithm& f_;
  void* const state_;
  TimeNs earliest_ = 0;
};

// Returns what is wrong with a library's account of its algorithm, or nothing.
std::string problem(const rocemu_algorithm* algorithm) {
  if (algorithm == nullptr) return std::string(kEntry) + "() returns NULL";
  if (algorithm->version != ROCEMU_CONGESTION_VERSION)
    return "it was built for version " + std::to_string(algorithm->version) +
           " of rocemu/congestion.h, and this is version " +
           std::to_string(ROCEMU_CONGESTION_VERSION);
  if (!is_name(algorithm->name)) return "its name is none: 1 to 32 letters, digits, _ and -";
  if (algorithm->create == nullptr || algorithm->destroy == nullptr)
    return "it has no create or no destroy function";
  if (algorithm->deadline != nullptr && algorithm->on_timer == nullptr)
    return "it has a deadline function and no on_timer";
  constexpr uint32_t kNeeds = ROCEMU_NEEDS_ECN | ROCEMU_NEEDS_EVERY_ANSWER |
                              ROCEMU_NEEDS_TELEMETRY | ROCEMU_NEEDS_HOP_COUNT;
  if ((algorithm->needs & ~kNeeds) != 0) return "it needs what this version does not know";
  if (algorithm->parameter_count > kMaxParameters ||
      (algorithm->parameter_count != 0 && algorithm->parameters == nullptr))
    return "its table of parameters is none, or has more than " + std::to_string(kMaxParameters);
  for (uint32_t i = 0; i < algorithm->parameter_count; ++i) {
    const rocemu_parameter& parameter = algorithm->parameters[i];
    if (!is_name(parameter.name) || !(parameter.least <= parameter.value) ||
        !(parameter.value <= parameter.most))
      return "its parameter " + std::to_string(i) +
             " has no good name, or a value that is not within its bounds";
  }
  return {};
}

std::shared_ptr<const AlgorithmKind> kind_of(const rocemu_algorithm& algorithm) {
  AlgorithmKind kind{.name = algorithm.name,
                     .needs = {.ecn = (algorithm.needs & ROCEMU_NEEDS_ECN) != 0,
                               // A window that closes over packets none of which asked for an
                               // answer would never open again.
                               .every_answer = (algorithm.needs & ROCEMU_NEEDS_EVERY_ANSWER) != 0 ||
                                               algorithm.window_bytes != nullptr,
                               .telemetry = (algorithm.needs & ROCEMU_NEEDS_TELEMETRY) != 0,
                               .hop_count = (algorithm.needs & ROCEMU_NEEDS_HOP_COUNT) != 0},
                     .make = [&algorithm](std::span<const double> values,
                                          const Flow& flow) -> std::unique_ptr<Algorithm> {
                       const rocemu_flow told{flow.line_rate_bps, flow.max_frame_bytes, flow.seed};
                       void* const state = algorithm.create(&told, values.data());
                       if (state == nullptr) return nullptr;
                       return std::make_unique<Foreign>(algorithm, state);
                     }};
  Preset preset{"default", {}};
  for (uint32_t i = 0; i < algorithm.parameter_count; ++i) {
    const rocemu_parameter& parameter = algorithm.parameters[i];
    kind.parameters.push_back({.name = parameter.name,
                               .unit = parameter.unit == nullptr ? "" : parameter.unit,
                               .least = parameter.least,
                               .most = parameter.most});
    preset.values.push_back(parameter.value);
  }
  kind.presets.push_back(std::move(preset));
  return std::make_shared<AlgorithmKind>(std::move(kind));
}

}  // namespace

LoadedPlugin load_plugin(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, std::string("it cannot be loaded: ") + ::dlerror()};
  const auto entry = reinterpret_cast<decltype(&::rocemu_congestion)>(::dlsym(library, kEntry));
  if (entry == nullptr) {
    ::dlclose(library);
    return {nullptr, path + ": it has no function " + kEntry + "()"};
  }
  const rocemu_algorithm* const algorithm = entry();
  if (const std::string error = problem(algorithm); !error.empty()) {
    ::dlclose(library);
    return {nullptr, path + ": " + error};
  }
  return {kind_of(*algorithm), {}};
}

}  // namespace rocemu::congestion
