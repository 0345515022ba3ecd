// Values that the keys of a description fill in, before the network is put together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "network/description/description.h"

namespace rocemu::network {

// Settings that are given for one kind of links.
struct LinkDraft {
  std::optional<uint64_t> rate_bits_per_s;
  std::optional<uint64_t> delay_ns;
  std::optional<uint64_t> loss_ppm;

  // The settings given here, and for the others those of `base`.
  LinkSettings over(const LinkSettings& base) const {
    return {rate_bits_per_s.value_or(base.rate_bits_per_s), delay_ns.value_or(base.delay_ns),
            static_cast<uint32_t>(loss_ppm.value_or(base.loss_ppm))};
  }
};

// The keys of [topology], by their names; those that a kind does not take have to be empty.
struct TopologyDraft {
  std::string kind;
  std::optional<uint64_t> left, right, hosts, leaves, spines, hosts_per_leaf, k, hosts_per_edge;
  std::optional<uint64_t> oversubscription_ppm;
  std::vector<std::string> host_names, switch_names, links;
  std::string file;
};

// [switches.NAME]: switches with settings of their own, and the keys that say which.
struct SwitchGroup {
  std::vector<std::string> names;
  std::vector<TomlKey> keys;  // sections are those behind the group's name
};

struct Draft {
  TopologyDraft topology;
  LinkDraft links;
  LinkDraft fabric_links;
  std::vector<std::pair<std::string, SwitchGroup>> groups;  // by name, in the file's order
  std::vector<std::string> failures;
  NetworkSettings settings;
};

// Thrown: what is wrong with a key, and what is allowed.
struct WrongKey {
  std::string section;  // empty: none
  std::string key;
  std::string what;
};

// Each of these throws WrongKey. The directory is where the file of the topology is looked for.
void apply_key(Draft& draft, const std::string& section, const std::string& key,
               const std::vector<std::string>& values);
Topology make_topology(const Draft& draft, const std::filesystem::path& directory);
// "A B down TIME up TIME [every TIME]"
LinkFailure parse_failure(const std::string& text, const Topology& topology);
// False when the key is of no group.
bool take_group_key(Draft& draft, const TomlKey& key);
// The settings of the groups' switches: the usual ones, but for what the groups say.
std::map<uint32_t, SwitchSettings> settings_of_groups(const Draft& draft, const Topology& topology);
// Checks settings that have to fit each other.
void check(const Description& description);

}  // namespace rocemu::network
