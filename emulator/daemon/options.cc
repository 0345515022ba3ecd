#include "emulator/daemon/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/configuration_file.h"
#include "emulator/daemon/limit_profiles.h"
#include "emulator/daemon/tracing/trace_settings.h"
#include "emulator/fault/grammar.h"
#include "emulator/transport/requester/rtt_estimator.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {
namespace {

constexpr uint32_t kMax24Bits = (1u << 24) - 1;
constexpr uint32_t kMaxKeys =
    1u << 23;  // regions, and windows: together their indices have 24 bits
constexpr uint32_t kMaxEntries = 1u << 24;  // a ring's: its indices are 32 bits, its size fits 31
// The largest max_msg_size that may be configured, half of what the specification allows: a READ of
// 2^31 bytes at MTU 256 would own 2^23 PSNs, more than can be put in order (IBTA vol 1, 9.7.2).
constexpr uint32_t kMaxConfigurableMessageBytes = 1u << 30;

// Adds a section of the configuration file, which is hidden from the command line's help.
CLI::App* add_section(CLI::App& app, const char* name) {
  CLI::App* section = app.add_subcommand(name);
  section->group("");
  section->configurable();
  return section;
}

template <class Value>
void add_limit(CLI::App* section, const char* name, Value& value, Value least, Value most) {
  section->add_option(std::string("--") + name, value)->check(CLI::Range(least, most));
}

void add_device_limits(CLI::App& app, std::string& profile, device::DeviceLimits& limits) {
  CLI::App* section = add_section(app, "limits");
  section->add_option("--profile", profile)->check(CLI::IsMember(limit_profile_names()));
  const auto add = [section](const char* name, uint32_t& value, uint32_t least, uint32_t most) {
    add_limit(section, name, value, least, most);
  };
  add("max_qp", limits.max_qp, 1, ROCEMU_DOORBELL_SLOTS_MAX);
  add("max_qp_wr", limits.max_qp_wr, 1, 1u << 20);
  add("max_sge", limits.max_sge, 1, 256);
  add("max_cq", limits.max_cq, 1, kMax24Bits);
  add("max_cqe", limits.max_cqe, 1, kMaxEntries);
  add("max_mr", limits.max_mr, 1, kMaxKeys);
  add("max_mw", limits.max_mw, 0, kMaxKeys);
  add("max_pd", limits.max_pd, 1, kMax24Bits);
  add("max_contexts", limits.max_contexts, 1, 65536);
  add("max_channels", limits.max_channels, 1, kMax24Bits);
  add("max_ah", limits.max_ah, 1, kMax24Bits);
  add("max_srq", limits.max_srq, 1, kMax24Bits);
  add("max_srq_wr", limits.max_srq_wr, 1, 1u << 20);
  add("max_srq_sge", limits.max_srq_sge, 1, 256);
  add("max_xrcd", limits.max_xrcd, 1, kMax24Bits);
  add("max_mcast_grp", limits.max_mcast_grp, 1, kMax24Bits);
  add("max_mcast_qp_attach", limits.max_mcast_qp_attach, 1, 65536);
  add("max_total_mcast_qp_attach", limits.max_total_mcast_qp_attach, 1, kMax24Bits);
  add("max_qp_rd_atom", limits.max_qp_rd_atom, 1, 255);
  add("max_inline_data", limits.max_inline_data, 0, 4096);
  add("max_msg_size", limits.max_msg_size, 4096, kMaxConfigurableMessageBytes);
  add("num_comp_vectors", limits.num_comp_vectors, 1, 1024);
  add_limit<uint64_t>(section, "max_dm_size", limits.max_dm_size, 0, 1ull << 40);
  add_limit<uint64_t>(section, "max_mr_size", limits.max_mr_size, 4096, UINT64_MAX / 2);
}

// CLI11's own transformers name their numbers as well when they refuse a name.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const char* option, Value& value,
                        const std::map<std::string, Value>& choices, const char* description) {
  std::vector<std::string> names;
  for (const auto& [name, chosen] : choices) names.push_back(name);
  return app
      .add_option_function<std::string>(
          option, [&value, choices](const std::string& name) { value = choices.at(name); },
          description)
      ->check(CLI::IsMember(names));
}

CLI::Option* add_recovery(CLI::App& app, transport::Recovery& recovery) {
  using transport::Recovery;
  return add_choice<Recovery>(
             app, "--recovery", recovery,
             {{"go-back-n", Recovery::go_back_n}, {"selective-repeat", Recovery::selective_repeat}},
             "How losses are made good: go-back-n, or selective-repeat with peers that have it")
      ->option_text("NAME");
}

void add_transport_limits(CLI::App& app, transport::TransportLimits& limits) {
  CLI::App* section = add_section(app, "transport");
  add_limit(section, "window_packets", limits.window_packets, 1u, 1u << 16);
  add_limit(section, "ack_interval_packets", limits.ack_interval_packets, 1u, 1u << 16);
  add_limit(section, "quantum_frames", limits.quantum_frames, 1u, 64u);
  add_recovery(*section, limits.recovery);
  section->add_option("--multipath", limits.multipath);
  // They double each time in a row, to a second at most.
  constexpr auto kMaxRto_us = static_cast<uint32_t>(transport::RttEstimator::kCapNs / 1000);
  add_limit(section, "rto_low_us", limits.rto_low_us, 0u, kMaxRto_us);
  add_limit(section, "rto_high_us", limits.rto_high_us, 0u, kMaxRto_us);
}

// [congestion] of the configuration file: the algorithm of all devices, those of some, and
// parameters by their names, of which those that were given are not empty.
struct CongestionTexts {
  std::string algorithm;
  std::vector<std::string> devices;
  std::map<std::string, std::string> parameters;
};

void add_congestion(CLI::App& app, CongestionTexts& texts) {
  CLI::App* section = add_section(app, "congestion");
  section->add_option("--algorithm", texts.algorithm);
  section->add_option("--devices", texts.devices);
  for (const std::string& name : congestion::parameter_names())
    section->add_option("--" + name, texts.parameters[name]);
}

// [shake] of the configuration file; what was not given is empty.
struct ShakeTexts {
  std::vector<std::string> behaviours;
  std::string strength;
  std::string seed;
};

void add_shake(CLI::App& app, ShakeTexts& texts) {
  CLI::App* section = add_section(app, "shake");
  section->add_option("--behaviours", texts.behaviours);
  section->add_option("--strength", texts.strength);
  section->add_option("--seed", texts.seed);
}

bool has_device(uint32_t devices, const std::string& name) {
  if (name == impairment::kAllPorts) return true;
  for (uint32_t i = 0; i < devices; ++i)
    if (device::default_config(i).name == name) return true;
  return false;
}

// Returns what is wrong, or nothing. Without --devices there are as many as ports are given for.
std::string read_ports(const std::vector<std::string>& texts, bool devices_given,
                       Options& options) {
  std::vector<uint32_t> taken;
  for (const std::string& text : texts) {
    dpdk_io::ParsedPort parsed = dpdk_io::parse_port(text);
    if (!parsed.assignment) return parsed.error;
    const std::string& device = parsed.assignment->device;
    uint32_t index = 0;
    while (index < dpdk_io::Switch::kMaxPorts && device::default_config(index).name != device)
      ++index;
    if (index == dpdk_io::Switch::kMaxPorts)
      return "'" + device + "' is no device; they are called rocemu0, rocemu1 and so on";
    if (devices_given && index >= options.devices)
      return "there is no device '" + device + "'; the last one is " +
             device::default_config(options.devices - 1).name;
    if (std::ranges::find(taken, index) != taken.end()) return device + " has two ports";
    taken.push_back(index);
    options.ports.push_back(std::move(*parsed.assignment));
  }
  if (!devices_given && !taken.empty()) options.devices = std::ranges::max(taken) + 1;
  return {};
}

// Returns what is wrong, or nothing.
std::string read_impairments(const std::vector<std::string>& texts, Options& options) {
  for (const std::string& text : texts) {
    impairment::ParsedAssignment parsed = impairment::parse_assignment(text);
    if (parsed.assignment && !has_device(options.devices, parsed.assignment->port))
      return "there is no device '" + parsed.assignment->port + "'; the last one is " +
             device::default_config(options.devices - 1).name;
    if (!parsed.error.empty()) return parsed.error;
    options.impair.push_back(std::move(*parsed.assignment));
  }
  return {};
}

// Returns what is wrong, or nothing.
std::string read_faults(const Options& options) {
  for (const std::string& text : options.faults) {
    const fault::ParsedFaults parsed = fault::parse_faults(text);
    if (!parsed.error.empty()) return parsed.error;
    if (const std::string& device = parsed.faults.front().device;
        !has_device(options.devices, device))
      return "there is no device '" + device + "'; the last one is " +
             device::default_config(options.devices - 1).name;
  }
  return {};
}

// [DEVICE=]NAME[:PRESET][,KEY=VALUE]... Returns what is wrong, or nothing.
std::string read_congestion(std::string_view text, Options& options) {
  const std::string_view head = text.substr(0, text.find(','));
  const size_t equals = head.substr(0, head.find('/')).find('=');
  const std::string device(equals == head.npos ? impairment::kAllPorts : head.substr(0, equals));
  if (!has_device(options.devices, device))
    return "there is no device '" + device + "'; the last one is " +
           device::default_config(options.devices - 1).name;
  if (equals != head.npos) text.remove_prefix(equals + 1);
  const congestion::ParsedSettings parsed = congestion::parse_settings(text);
  if (!parsed.settings) return parsed.error;
  for (uint32_t i = 0; i < options.devices; ++i)
    if (equals == head.npos || device::default_config(i).name == device)
      options.congestion[i] = *parsed.settings;
  return {};
}

// The file's section first, so that the command line has the last word. Returns what is wrong, or
// nothing.
std::string read_congestion(const CongestionTexts& file, const std::vector<std::string>& given,
                            Options& options) {
  options.congestion.resize(options.devices);
  std::string all =
      file.algorithm.empty() ? std::string(congestion::kAdaptiveWindow) : file.algorithm;
  for (const auto& [name, value] : file.parameters)
    if (!value.empty()) all += "," + name + "=" + value;
  std::string error = read_congestion(all, options);
  for (const auto* texts : {&file.devices, &given})
    for (const std::string& text : *texts)
      if (error.empty()) error = read_congestion(text, options);
  return error;
}

// Returns what is wrong, or nothing.
std::string read_network(const std::string& file, Options& options) {
  network::ParsedDescription parsed = network::read_description(file);
  if (!parsed.description) return parsed.error;
  const size_t hosts = parsed.description->topology.hosts().size();
  const size_t devices = options.devices - static_cast<size_t>(std::ranges::count_if(
                                               options.ports, [](const auto& port) {
                                                 return port.spec.kind != dpdk_io::PortKind::fabric;
                                               }));
  if (devices > hosts)
    return file + ": [topology] it has " + std::to_string(hosts) + " hosts, and there are " +
           std::to_string(devices) + " devices; each wants one";
  options.network = std::move(*parsed.description);
  return {};
}

// Returns the shake section of the file in the form that --shake takes.
std::string shake_text(const ShakeTexts& file) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  for (const std::string& behaviour : file.behaviours) add(behaviour);
  if (!file.strength.empty()) add("strength=" + file.strength);
  if (!file.seed.empty()) add("seed=" + file.seed);
  return text;
}

// Returns what is wrong, or nothing. A seed is drawn where none is given; some behaviours are
// limits of the device.
std::string read_shake(const std::string& text, Options& options) {
  const shake::ParsedSettings parsed = shake::parse_settings(text);
  if (!parsed.settings) return parsed.error;
  options.shake = *parsed.settings;
  // Short enough to be typed.
  if (options.shake.seed == 0) options.shake.seed = 1 + std::random_device{}() % 1'000'000;
  options.limits.grants_exactly = options.shake.has(shake::Behaviour::exact_sizes);
  if (options.shake.has(shake::Behaviour::limits))
    options.limits = smaller_limits(options.limits, *limit_profile("smallest-common"));
  return {};
}

constexpr uint64_t kMaxPcapMb = 1'000'000'000;

// Texts are options as they are typed, before they are read into Options.
struct Texts {
  std::string dma = "auto";
  std::string pcap;
  std::string trace;
  std::string trace_on_error;
  std::string trace_filter;
  std::string network;
  std::string metrics;
  std::vector<std::string> impair;
  std::vector<std::string> congestion;
  CongestionTexts congestion_section;
  std::vector<std::string> ports;
  int ready_fd = -1;
  std::string profile;
  std::string shake;
  ShakeTexts shake_section;
  transport::Recovery recovery{};  // before what the file's [transport] says
};

void add_trace_options(CLI::App& app, Options& options, Texts& texts) {
  CLI::Option* const whole =
      app.add_option("--trace", texts.trace,
                     "Write what becomes of each request and packet to this file")
          ->option_text("FILE");
  CLI::Option* const on_error =
      app.add_option("--trace-on-error", texts.trace_on_error,
                     "Write what led to it there when a QP fails or a program dies")
          ->option_text("FILE")
          ->excludes(whole);
  app.add_option("--trace-last", options.trace_last,
                 "How many of the last events of a device lead to an error (65536)")
      ->check(CLI::Range(TraceSettings::kMinLast, TraceSettings::kMaxLast))
      ->needs(on_error)
      ->option_text("N");
  app.add_option("--trace-filter", texts.trace_filter,
                 "Trace these alone: device=NAME,qp=QPN,program=NAME|PID, each as often as wanted")
      ->option_text("KEY=VALUE,...");
  app.add_option("--trace-limit-mb", options.trace_limit_mb,
                 "Let the trace's file have no more than so many megabytes (1074)")
      ->check(CLI::Range(uint64_t{1}, kMaxPcapMb))
      ->option_text("N");
}

// Returns what is wrong, or nothing.
std::string read_trace(const Texts& texts, Options& options) {
  if (!texts.trace.empty()) options.trace = texts.trace;
  if (!texts.trace_on_error.empty()) options.trace_on_error = texts.trace_on_error;
  if (texts.trace_filter.empty()) return {};
  if (!options.trace && !options.trace_on_error)
    return "there is nothing to filter without --trace or --trace-on-error";
  return trace::parse_filter(texts.trace_filter, options.trace_filter, options.trace_devices);
}

// The order of options here and in add_process_options() is that of the help.
void add_nic_options(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("--dir", options.dir, "State directory: the socket and the sysfs tree go there")
      ->required()
      ->option_text("DIR (REQUIRED)");
  app.add_option("--devices", options.devices, "Devices of the NIC, rocemu0 and on (2)")
      ->check(CLI::Range(1u, dpdk_io::Switch::kMaxPorts))
      ->option_text("N");
  app.add_option("--port", texts.ports,
                 "What a device's port is linked to: DEVICE=switch, =IFNAME, =udp:ADDRESS, "
                 "=vdev:SPEC[@ADDRESS/PREFIX] or =pci:BDF[@ADDRESS/PREFIX] by DPDK; several times "
                 "for several devices")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("DEVICE=PORT");
  app.add_option(
         "--pcap", texts.pcap,
         "Write every frame on the wire to this file; FILE.pcapng says what the NIC knows of each")
      ->option_text("FILE");
  app.add_option("--pcap-limit-mb", options.pcap_limit_mb,
                 "Record no more than so many megabytes there")
      ->check(CLI::Range(uint64_t{1}, kMaxPcapMb))
      ->option_text("N");
  add_trace_options(app, options, texts);
  app.add_option("--network", texts.network,
                 "A TOML file with the network between the devices on the switch")
      ->option_text("FILE");
  add_recovery(app, texts.recovery);
  app.add_option("--impair", texts.impair,
                 "Impairments of links: [DEVICE[.tx|.rx|.both]:]loss=1%,delay=20us,... or none; "
                 "several times for several links")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("SPEC");
  app.add_option(
         "--fault", options.faults,
         "What is to go wrong: DEVICE WHAT [KEY=VALUE]...; several times for several faults")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("SPEC");
  app.add_option("--congestion", texts.congestion,
                 "Congestion control: [DEVICE=]NAME[:PRESET][,KEY=VALUE]...; several times for "
                 "several devices")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("SPEC");
}

void add_shake_option(CLI::App& app, Texts& texts) {
  app.add_option("--shake", texts.shake,
                 "Do what the specification permits and hardware seldom does: "
                 "[NAME|-NAME],...[,strength=PERCENT][,seed=NUMBER]; all without a NAME")
      ->expected(0, 1)
      ->default_str("all")
      ->option_text("[=NAMES]");
}

void add_process_options(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("--ready-fd", texts.ready_fd,
                 "Write 'ready' and a newline here when programs can start")
      ->check(CLI::NonNegativeNumber)
      ->configurable(false)
      ->option_text("N");
  app.add_option(
         "--log-level", options.log_level,
         "How much to say on stderr: trace, debug, info (when it is not given), warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->option_text("LEVEL");
  app.add_flag("--die-with-parent", options.die_with_parent,
               "End when the process that started this one ends");
  app.add_flag("--check", options.check,
               "Look for what programs do wrong and only the NIC can see, for their checker to ask")
      ->configurable(false);  // rocemu's option of the name is what has programs checked
  app.add_option(
         "--dma", texts.dma,
         "How to reach programs' memory: auto, process_vm or mem_fd (docs/configuration.md)")
      ->check(CLI::IsMember({"auto", "process_vm", "mem_fd"}))
      ->option_text("NAME");
  app.add_option("--metrics", texts.metrics,
                 "Serve the counters to Prometheus, over HTTP at /metrics: ADDRESS:PORT, PORT on "
                 "loopback, or the path of a Unix socket")
      ->option_text("ADDRESS");
  add_choice<ParallelMode>(
      app, "--parallel", options.parallel,
      {{"auto", ParallelMode::automatic},
       {"never", ParallelMode::never},
       {"always", ParallelMode::always},
       {"programs", ParallelMode::programs}},
      "Several cores for devices on the switch, or for what programs of one move: where that "
      "is faster and there are more than two (auto), never, or, for tests, always "
      "(devices) or programs")
      ->option_text("MODE");
  app.add_option("--parallel-threads", options.parallel_threads,
                 "On so many threads at most (0: half of the CPUs)")
      ->check(CLI::Range(0U, ParallelPolicy::kMaxThreads))
      ->option_text("N");
  add_choice<bool>(
      app, "--icrc", options.icrc_always, {{"when-seen", false}, {"always", true}},
      "When the CRC of a packet is made and looked at: where somebody can see the packet "
      "or change it (when-seen), or always")
      ->option_text("WHEN");
}

// CLI11 says "INI was not able to parse NAME", also of TOML, and calls a section NAME.++.
std::string setting_named(const std::string& message) {
  const std::string name = message.substr(message.find_last_of(' ') + 1);
  return name.substr(0, name.find(".++"));
}

std::string describe(const CLI::ConfigError& error) {
  const std::string message = error.what();
  constexpr std::string_view kNotConfigurable = ": This option is not allowed in a configuration";
  if (const size_t at = message.find(kNotConfigurable); at != std::string::npos)
    return message.substr(0, at) + " is an option of the command line, and no setting";
  return "unknown setting: " + setting_named(message);
}

std::string configuration_of(const CLI::App& app) {
  const auto& given = app.get_config_ptr()->results();
  return given.empty() ? "" : given.front();
}

// Returns the exit code when there is nothing to run.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv,
                         const std::string& profile, device::DeviceLimits& limits) {
  try {
    app.parse(argc, argv);
    if (const auto chosen = limit_profile(profile)) {
      // The command line is parsed once more, so that limits which are given themselves change
      // those of the profile.
      limits = *chosen;
      app.parse(argc, argv);
    }
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ConfigError& error) {
    std::fprintf(stderr, "rocemud: %s: %s\n", configuration_of(app).c_str(),
                 describe(error).c_str());
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    const std::string file = configuration_of(app);
    const std::string where = file.empty() ? "" : ", of the command line or of " + file;
    std::fprintf(stderr, "rocemud: %s%s (see rocemud --help)\n", error.what(), where.c_str());
    return kExitUsage;
  }
  return std::nullopt;
}

std::string check_files_apart(const Options& options) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : {options.pcap, options.trace, options.trace_on_error})
    if (file) files.push_back(std::filesystem::weakly_canonical(*file));
  std::ranges::sort(files);
  const auto same = std::ranges::adjacent_find(files);
  return same == files.end() ? "" : same->native() + " cannot be the file of two recordings";
}

ParsedOptions refuse(const char* option, const std::string& error) {
  std::fprintf(stderr, "rocemud: %s: %s\n", option, error.c_str());
  return {std::nullopt, kExitUsage};
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  Options options;
  Texts texts;
  CLI::App app(
      "rocemud: the software RoCEv2 NIC. People start it with 'rocemu up' or 'rocemu run'.",
      "rocemud");
  app.set_version_flag("--version", ROCEMU_VERSION);
  app.set_config("--config", "", "Read options from a TOML file")->option_text("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.config_formatter(std::make_shared<ConfigurationFile>());
  add_nic_options(app, options, texts);
  add_shake_option(app, texts);
  add_process_options(app, options, texts);
  add_device_limits(app, texts.profile, options.limits);
  add_transport_limits(app, options.transport);
  add_congestion(app, texts.congestion_section);
  add_shake(app, texts.shake_section);
  if (const auto exit_code = parse(app, argc, argv, texts.profile, options.limits))
    return {std::nullopt, *exit_code};

  if (const std::string error = read_ports(texts.ports, app.count("--devices") > 0, options);
      !error.empty())
    return refuse("port", error);
  if (const std::string error = read_impairments(texts.impair, options); !error.empty())
    return refuse("impair", error);
  if (const std::string error = read_faults(options); !error.empty()) return refuse("fault", error);
  if (const std::string error =
          read_congestion(texts.congestion_section, texts.congestion, options);
      !error.empty())
    return refuse("congestion", error);
  const std::string shake =
      app.count("--shake") > 0 ? texts.shake : shake_text(texts.shake_section);
  if (app.count("--shake") > 0 || !shake.empty())
    if (const std::string error = read_shake(shake, options); !error.empty())
      return refuse("shake", error);
  if (!texts.network.empty())
    if (const std::string error = read_network(texts.network, options); !error.empty())
      return refuse("network", error);
  if (!texts.metrics.empty()) {
    ParsedMetricsAddress parsed = parse_metrics_address(texts.metrics);
    if (!parsed.address) return refuse("metrics", parsed.error);
    options.metrics = std::move(parsed.address);
  }
  if (!texts.pcap.empty()) options.pcap = texts.pcap;
  if (const std::string error = read_trace(texts, options); !error.empty())
    return refuse("trace-filter", error);
  if (const std::string error = check_files_apart(options); !error.empty())
    return refuse("pcap", error);
  if (app.count("--recovery") > 0) options.transport.recovery = texts.recovery;
  if (texts.ready_fd >= 0) options.ready_fd = texts.ready_fd;
  if (texts.dma == "process_vm") options.dma = dma::Method::process_vm;
  if (texts.dma == "mem_fd") options.dma = dma::Method::mem_fd;
  return {std::move(options), 0};
}

}  // namespace rocemu::daemon
