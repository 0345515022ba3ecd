// The keys of an experiment but for those of its network and its workloads: their names, what they
// take, an example.
#include <algorithm>
#include <iterator>
#include <utility>

#include "emulator/experiment/settings/draft.h"

namespace rocemu::experiment {

namespace {

using impairment::kDuration;

struct Key {
  const char* section;
  const char* name;
  const char* example;
  void (*apply)(Draft&, const Values&);
};

template <class Member>
void set_number(Member& member, const Values& values, uint64_t least, uint64_t most) {
  member = static_cast<Member>(number(one(values), least, most));
}

// Takes congestion control from [nic], as an option, or in the form that the NIC's configuration
// file has.
void choose_congestion(Draft& draft, const Values& values) {
  if (std::exchange(draft.has_congestion, true))
    throw Wrong{"there are congestion of [nic] and algorithm of [congestion]; give one of them"};
  const congestion::ParsedSettings parsed = congestion::parse_settings(one(values));
  if (!parsed.settings) throw Wrong{parsed.error};
  draft.experiment.nics.usual.limits.congestion = *parsed.settings;
}

constexpr Key kKeys[] = {
    {"", "name", "\"incast\"", [](Draft& d, const Values& v) { d.experiment.name = one(v); }},
    {"", "seed", "7",
     [](Draft& d, const Values& v) { set_number(d.experiment.seed, v, 0, UINT64_MAX); }},
    {"", "duration", "\"10ms\"",
     [](Draft& d, const Values& v) { d.experiment.duration_ns = positive(kDuration, v); }},
    {"", "drain", "\"10ms\"",
     [](Draft& d, const Values& v) {
       d.experiment.drain_ns = quantity(kDuration, v);
       d.has_drain = true;
     }},
    {"", "network", "\"leaf-spine.toml\"",
     [](Draft& d, const Values& v) { d.network_file = one(v); }},
    {"nic", "path_mtu", "1024",
     [](Draft& d, const Values& v) {
       d.experiment.nics.usual.path_mtu_bytes = network::choice<uint32_t>(
           v, {{"256", 256}, {"512", 512}, {"1024", 1024}, {"2048", 2048}, {"4096", 4096}});
     }},
    {"nic", "timeout", "14",
     [](Draft& d, const Values& v) { set_number(d.experiment.nics.usual.timeout, v, 0, 31); }},
    {"nic", "retry_count", "7",
     [](Draft& d, const Values& v) { set_number(d.experiment.nics.usual.retry_count, v, 0, 7); }},
    {"nic", "rnr_retry", "7",
     [](Draft& d, const Values& v) { set_number(d.experiment.nics.usual.rnr_retry, v, 0, 7); }},
    {"nic", "max_rd_atomic", "16",
     [](Draft& d, const Values& v) {
       set_number(d.experiment.nics.usual.max_rd_atomic, v, 1, 128);
     }},
    {"nic", "window_packets", "256",
     [](Draft& d, const Values& v) {
       set_number(d.experiment.nics.usual.limits.window_packets, v, 1, 1 << 22);
     }},
    {"nic", "ack_interval_packets", "64",
     [](Draft& d, const Values& v) {
       set_number(d.experiment.nics.usual.limits.ack_interval_packets, v, 1, 1 << 22);
     }},
    {"nic", "quantum_frames", "16",
     [](Draft& d, const Values& v) {
       set_number(d.experiment.nics.usual.limits.quantum_frames, v, 1, 1024);
     }},
    {"nic", "dscp", "26",
     [](Draft& d, const Values& v) { set_number(d.experiment.nics.usual.dscp, v, 0, 63); }},
    {"nic", "max_qps", "16384",
     [](Draft& d, const Values& v) { set_number(d.experiment.nics.usual.max_qps, v, 1, 1 << 20); }},
    {"nic", "connections", "\"flow\"",
     [](Draft& d, const Values& v) {
       d.experiment.nics.usual.connections = network::choice<Connections>(
           v, {{"flow", Connections::per_flow}, {"pair", Connections::per_pair}});
     }},
    {"nic", "congestion", "\"dcqcn:paper\"", choose_congestion},
    {"congestion", "algorithm", "\"dcqcn:paper\"", choose_congestion},
    {"nic", "recovery", "\"go-back-n\"",
     [](Draft& d, const Values& v) {
       using transport::Recovery;
       d.experiment.nics.usual.limits.recovery = network::choice<Recovery>(
           v,
           {{"go-back-n", Recovery::go_back_n}, {"selective-repeat", Recovery::selective_repeat}});
     }},
    {"nic", "multipath", "true",
     [](Draft& d, const Values& v) {
       d.experiment.nics.usual.limits.multipath =
           network::choice<bool>(v, {{"true", true}, {"false", false}});
     }},
    {"results", "interval", "\"10us\"",
     [](Draft& d, const Values& v) { d.experiment.results.interval_ns = quantity(kDuration, v); }},
    {"results", "warmup", "\"1ms\"",
     [](Draft& d, const Values& v) { d.experiment.results.warmup_ns = quantity(kDuration, v); }},
    {"results", "ports", "[\"leaf0 spine1\"]", [](Draft& d, const Values& v) { d.ports = v; }},
    {"results", "plots", "true",
     [](Draft& d, const Values& v) { d.experiment.results.plots = network::truth(v); }},
};

// The part of `section` behind `outer` and its dot; false when it is not in there.
bool within(const std::string& section, const std::string& outer, std::string& inner) {
  if (section == outer) {
    inner.clear();
    return true;
  }
  if (!section.starts_with(outer + ".")) return false;
  inner = section.substr(outer.size() + 1);
  return true;
}

std::string one_value(const network::TomlKey& key) {
  try {
    return one(key.values);
  } catch (const Wrong& wrong) {
    throw WrongKey{key.section, key.name, wrong.what};
  }
}

void apply_workload_key(Draft& draft, const std::string& name, const network::TomlKey& key) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw WrongKey{key.section, key.name,
                   "a workload has a name of one word, as in [workload.background]"};
  auto workload =
      std::ranges::find(draft.workloads, name, &std::pair<std::string, WorkloadDraft>::first);
  if (workload == draft.workloads.end())
    workload = draft.workloads.insert(workload, {name, WorkloadDraft{}});
  workload->second.given[key.name] = key.values;
}

void note_nic_key(Draft& draft, const std::string& name, const network::TomlKey& key) {
  auto group = std::ranges::find(draft.nic_groups, name, &std::pair<std::string, NicGroup>::first);
  if (group == draft.nic_groups.end()) group = draft.nic_groups.insert(group, {name, NicGroup{}});
  if (key.name == "hosts") {
    group->second.hosts = key.values;
  } else {
    group->second.keys.push_back({"nic", key.name, key.values});
  }
}

}  // namespace

void apply_key(Draft& draft, const network::TomlKey& toml) {
  std::string inner;
  if (within(toml.section, "network", inner)) {
    draft.network_keys.push_back({inner, toml.name, toml.values});
    return;
  }
  if (toml.section == "congestion" && toml.name != "algorithm") {
    draft.parameters.push_back({toml.name, one_value(toml)});
    return;
  }
  if (within(toml.section, "workload", inner)) return apply_workload_key(draft, inner, toml);
  if (within(toml.section, "nic", inner) && !inner.empty()) return note_nic_key(draft, inner, toml);
  const auto* const key = std::ranges::find_if(kKeys, [&](const Key& each) {
    return each.section == toml.section && each.name == toml.name;
  });
  if (key == std::end(kKeys)) {
    const std::string known = network::names_in(kKeys, toml.section);
    if (known.empty())
      throw WrongKey{"", toml.section,
                     "there is no such section; there are network, nic, nic.NAME, congestion, "
                     "workload.NAME, results"};
    throw WrongKey{toml.section, toml.name, "there is no such key; there are " + known};
  }
  try {
    key->apply(draft, toml.values);
  } catch (const Wrong& wrong) {
    throw WrongKey{toml.section, toml.name,
                   wrong.what + " (as in " + key->name + " = " + key->example + ")"};
  }
}

}  // namespace rocemu::experiment
