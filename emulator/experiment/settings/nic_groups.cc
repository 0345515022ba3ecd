// [nic.NAME]: NICs that are not like the others (docs/simulator.md).
#include "emulator/experiment/settings/draft.h"

namespace rocemu::experiment {

namespace {

NicSettings settings_of(const NicSettings& usual, const std::string& section,
                        const NicGroup& group) {
  Draft own;
  own.experiment.nics.usual = usual;
  for (const network::TomlKey& key : group.keys) {
    if (key.name == "connections")
      throw WrongKey{section, key.name, "it is the same for all NICs: [nic]"};
    try {
      apply_key(own, key);
    } catch (WrongKey& wrong) {
      wrong.section = section;
      throw;
    }
  }
  return own.experiment.nics.usual;
}

std::vector<uint32_t> hosts_of(const HostNames& hosts, const std::string& section,
                               const NicGroup& group) {
  const char* const example = " (as in hosts = [\"h0..h3\", \"h7\"])";
  if (group.hosts.empty()) throw WrongKey{section, "hosts", std::string("it is missing") + example};
  try {
    return hosts.list(group.hosts);
  } catch (const Wrong& wrong) {
    throw WrongKey{section, "hosts", wrong.what + example};
  }
}

}  // namespace

std::map<uint32_t, NicSettings> make_other_nics(const Draft& draft, const HostNames& hosts) {
  std::map<uint32_t, NicSettings> others;
  for (const auto& [name, group] : draft.nic_groups) {
    const std::string section = "nic." + name;
    const NicSettings settings = settings_of(draft.experiment.nics.usual, section, group);
    for (const uint32_t host : hosts_of(hosts, section, group))
      if (!others.emplace(host, settings).second)
        throw WrongKey{section, "hosts",
                       "host " + std::to_string(host) + " is in another group as well"};
  }
  return others;
}

}  // namespace rocemu::experiment
