// Values that the keys of a description fill in, before the network is put together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

struct Draft {
  TopologyDraft topology;
  LinkDraft links;
  LinkDraft fabric_links;
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
// Checks settings that have to fit each other.
void check(const Description& description);

}  // namespace rocemu::network
