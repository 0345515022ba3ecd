#include "emulator/experiment/settings/read_experiment.h"

#include <algorithm>

#include "base/read_file.h"
#include "emulator/experiment/settings/draft.h"

namespace rocemu::experiment {

namespace {

// So many points has a series that no interval is given for.
constexpr uint64_t kPoints = 500;
constexpr uint64_t kDrain = 10;  // times the duration

using network::TomlKey;

// An overridden key stands where it stood, or at the end.
void override_keys(std::vector<TomlKey>& keys, const std::vector<Override>& overrides) {
  for (const Override& change : overrides) {
    const auto key = std::ranges::find_if(keys, [&](const TomlKey& each) {
      return each.section == change.section && each.name == change.name;
    });
    if (key == keys.end()) {
      keys.push_back({change.section, change.name, change.values});
    } else {
      key->values = change.values;
    }
  }
}

network::Description make_network(const Draft& draft) {
  if (draft.network_file.empty() == draft.network_keys.empty())
    throw WrongKey{"", "network",
                   draft.network_file.empty()
                       ? "it is missing; write network = \"FILE\", or [network.topology] and the "
                         "other sections of a network's file (docs/networks.md)"
                       : "there are a file and [network] keys; give one of them"};
  if (draft.network_keys.empty()) {
    network::ParsedDescription parsed =
        network::read_description(draft.directory / draft.network_file);
    if (!parsed.description) throw WrongKey{"", "network", parsed.error};
    return std::move(*parsed.description);
  }
  network::ParsedDescription parsed =
      network::make_description(draft.network_keys, draft.directory, "network");
  // It names section and key itself.
  if (!parsed.description) throw WrongKey{"", "", parsed.error};
  return std::move(*parsed.description);
}

uint32_t find_port(const network::Topology& topology, const std::string& text) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::string from = text.substr(0, space);
  const std::string to = text.substr(std::min(space + 1, text.size()));
  for (uint32_t link = 0; link < topology.links.size(); ++link) {
    const std::string& a = topology.nodes[topology.links[link].a].name;
    const std::string& b = topology.nodes[topology.links[link].b].name;
    if (a == from && b == to) return network::port_of_link(link, false);
    if (b == from && a == to) return network::port_of_link(link, true);
  }
  throw WrongKey{"results", "ports",
                 quoted(text) + " is no link from one node to another (as in \"leaf0 spine1\")"};
}

Experiment put_together(Draft& draft) {
  Experiment& experiment = draft.experiment;
  if (experiment.duration_ns == 0)
    throw WrongKey{"", "duration", "it is missing (as in duration = \"10ms\")"};
  if (!draft.has_drain) experiment.drain_ns = kDrain * experiment.duration_ns;
  for (const auto& [key, value] : draft.parameters) {
    const std::string wrong =
        congestion::set_parameter(experiment.nics.usual.limits.congestion, key, value);
    if (!wrong.empty()) throw WrongKey{"congestion", key, wrong};
  }
  experiment.network = make_network(draft);
  const HostNames hosts(experiment.network.topology);
  experiment.nics.others = make_other_nics(draft, hosts);
  constexpr size_t kMaxWorkloads = 256;
  if (draft.workloads.size() > kMaxWorkloads)
    throw WrongKey{"", "workload", "there are more than 256 of them"};
  if (draft.workloads.empty())
    throw WrongKey{"", "workload",
                   "there is none; begin one with [workload.NAME] and kind = \"incast\""};
  for (const auto& [name, workload] : draft.workloads)
    experiment.workloads.push_back(
        make_workload_settings(name, workload, hosts, draft.directory, experiment.duration_ns));
  for (const std::string& port : draft.ports)
    experiment.results.ports.push_back(find_port(experiment.network.topology, port));
  return std::move(experiment);
}

}  // namespace

ParsedOverride parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return {std::nullopt, quoted(text) + " is not KEY=VALUE (as in workload.background.load=30%)"};
  const std::string key = text.substr(0, equals);
  const size_t dot = key.rfind('.');
  Override change;
  if (dot != std::string::npos) change.section = key.substr(0, dot);
  change.name = dot == std::string::npos ? key : key.substr(dot + 1);
  change.values = {text.substr(equals + 1)};
  return {std::move(change), ""};
}

ParsedExperiment parse_experiment(const std::string& text, const std::filesystem::path& name,
                                  const std::vector<Override>& overrides) {
  try {
    std::vector<TomlKey> keys = network::read_toml(text);
    override_keys(keys, overrides);
    Draft draft;
    draft.directory = name.parent_path();
    draft.experiment.name = name.stem().string();
    draft.experiment.results.interval_ns = kNever;
    for (const TomlKey& key : keys) apply_key(draft, key);
    Experiment experiment = put_together(draft);
    if (experiment.results.interval_ns == kNever)
      experiment.results.interval_ns = std::max<TimeNs>(1, experiment.duration_ns / kPoints);
    return {std::move(experiment), ""};
  } catch (const WrongKey& wrong) {
    const std::string section = wrong.section.empty() ? "" : "[" + wrong.section + "] ";
    const std::string key = wrong.key.empty() ? "" : wrong.key + ": ";
    return {std::nullopt, name.string() + ": " + section + key + wrong.what};
  } catch (const network::NotToml& error) {
    return {std::nullopt, name.string() + ": it is no TOML: " + error.what};
  }
}

ParsedExperiment read_experiment(const std::filesystem::path& file,
                                 const std::vector<Override>& overrides) {
  const std::optional<std::string> text = read_file(file);
  if (!text) return {std::nullopt, file.string() + ": it cannot be read"};
  return parse_experiment(*text, file, overrides);
}

}  // namespace rocemu::experiment
