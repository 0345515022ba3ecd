// [switches.NAME]: switches that are not like the others (docs/networks.md).
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "network/description/draft.h"
#include "network/description/values.h"

namespace rocemu::network {
namespace {

constexpr std::string_view kPrefix = "switches.";

// The sections that a group may have behind its name.
constexpr std::array<std::string_view, 6> kSections{"switch", "ecn",        "trimming",
                                                    "pfc",    "priorities", "paths"};

[[noreturn]] void fail(const std::string& group, const std::string& key, const std::string& what) {
  throw WrongKey{std::string(kPrefix) + group, key, what};
}

// Keys of [priorities] that say what a frame's priority is, which all switches have to agree on.
bool is_of_all(const TomlKey& key) {
  return key.section == "priorities" && (key.name == "by" || key.name == "dscp");
}

SwitchGroup& group_of(Draft& draft, const std::string& name) {
  const auto found =
      std::ranges::find(draft.groups, name, &std::pair<std::string, SwitchGroup>::first);
  if (found != draft.groups.end()) return found->second;
  return draft.groups.emplace_back(name, SwitchGroup{}).second;
}

uint32_t find_switch(const Topology& topology, const std::string& group, const std::string& name) {
  std::string first;
  for (uint32_t node = 0; node < topology.nodes.size(); ++node) {
    if (!topology.nodes[node].is_switch) continue;
    if (topology.nodes[node].name == name) return node;
    if (first.empty()) first = topology.nodes[node].name;
  }
  fail(group, "names",
       "there is no switch " + quoted(name) +
           (first.empty() ? "; there is none at all"
                          : "; the first is " + quoted(std::as_const(first))));
}

// A name, or "leaf0..leaf3": the switches from one to the other.
std::vector<uint32_t> nodes_of(const Topology& topology, const std::string& group,
                               const std::string& name) {
  const size_t dots = name.find("..");
  const uint32_t first = find_switch(topology, group, name.substr(0, dots));
  if (dots == std::string::npos) return {first};
  const uint32_t last = find_switch(topology, group, name.substr(dots + 2));
  std::vector<uint32_t> nodes;
  for (uint32_t node = first; node <= last; ++node)
    if (topology.nodes[node].is_switch) nodes.push_back(node);
  if (nodes.empty()) fail(group, "names", quoted(name) + ": the second comes before the first");
  return nodes;
}

SwitchSettings settings_of(const Draft& draft, const std::string& name, const SwitchGroup& group) {
  Draft own;
  own.settings.switches = draft.settings.switches;
  for (const TomlKey& key : group.keys) {
    try {
      apply_key(own, key.section, key.name, key.values);
    } catch (WrongKey& wrong) {
      wrong.section = std::string(kPrefix) + name + "." + wrong.section;
      throw;
    }
  }
  return own.settings.switches;
}

}  // namespace

bool take_group_key(Draft& draft, const TomlKey& key) {
  if (key.section != "switches" && !key.section.starts_with(kPrefix)) return false;
  const std::string behind = key.section.substr(std::min(kPrefix.size(), key.section.size()));
  const size_t dot = behind.find('.');
  const std::string name = behind.substr(0, dot);
  if (name.empty())
    throw WrongKey{
        key.section, key.name,
        "switches with settings of their own have a name, as in [switches.old]; those of all "
        "are in [switch]"};
  SwitchGroup& group = group_of(draft, name);
  if (dot == std::string::npos) {
    if (key.name != "names")
      fail(name, key.name,
           "there is no such key; there is names, and [switches." + name +
               ".SECTION] with the keys of switch, ecn, trimming, pfc, priorities or paths");
    group.names = key.values;
    return true;
  }
  TomlKey inner{behind.substr(dot + 1), key.name, key.values};
  if (std::ranges::find(kSections, inner.section) == kSections.end())
    fail(name, inner.section,
         "switches have no such section of their own; they have switch, ecn, trimming, pfc, "
         "priorities and paths");
  if (is_of_all(inner))
    throw WrongKey{key.section, key.name, "it is the same in the whole network: [priorities]"};
  group.keys.push_back(std::move(inner));
  return true;
}

std::map<uint32_t, SwitchSettings> settings_of_groups(const Draft& draft,
                                                      const Topology& topology) {
  std::map<uint32_t, SwitchSettings> of_nodes;
  for (const auto& [name, group] : draft.groups) {
    if (group.names.empty())
      fail(name, "names", "it is missing (as in names = [\"leaf0..leaf3\", \"spine1\"])");
    const SwitchSettings settings = settings_of(draft, name, group);
    for (const std::string& text : group.names)
      for (const uint32_t node : nodes_of(topology, name, text))
        if (!of_nodes.emplace(node, settings).second)
          fail(name, "names",
               quoted(topology.nodes[node].name) + " is there twice, here or in another group");
  }
  return of_nodes;
}

}  // namespace rocemu::network
