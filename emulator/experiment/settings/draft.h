// Values that the keys of an experiment fill in, before it is put together: hosts are names still.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emulator/experiment/settings/experiment.h"
#include "network/description/toml.h"
#include "network/description/values.h"

namespace rocemu::experiment {

using network::number;
using network::one;
using network::positive;
using network::quantity;
using network::quoted;
using network::Values;
using network::Wrong;

struct WorkloadDraft {
  std::map<std::string, Values> given;  // as they stand in the file
};

// [nic.NAME]: hosts whose NICs have settings of their own.
struct NicGroup {
  std::vector<std::string> hosts;
  std::vector<network::TomlKey> keys;
};

struct Draft {
  std::filesystem::path directory;  // where files are looked for
  Experiment experiment;
  bool has_drain = false;
  std::vector<std::string> ports;  // "leaf0 spine1"
  bool has_congestion = false;
  std::vector<std::pair<std::string, std::string>> parameters;  // for congestion control
  std::string network_file;
  std::vector<network::TomlKey> network_keys;
  std::vector<std::pair<std::string, WorkloadDraft>> workloads;
  std::vector<std::pair<std::string, NicGroup>> nic_groups;  // by name, in the file's order
};

// Thrown: what is wrong with a key, and what is allowed.
struct WrongKey {
  std::string section;  // empty: none
  std::string key;
  std::string what;
};

// Throws WrongKey.
void apply_key(Draft& draft, const network::TomlKey& key);

// The host of that name.
class HostNames {
 public:
  explicit HostNames(const network::Topology& topology);
  // Throws Wrong.
  uint32_t find(const std::string& name) const;
  // Names, and "h0..h7" for those from one to the other.
  std::vector<uint32_t> list(const Values& names) const;
  uint32_t count() const { return static_cast<uint32_t>(names_.size()); }

 private:
  std::map<std::string, uint32_t> names_;
};

// Throws WrongKey. The settings of the groups' NICs: the usual ones, but for what the groups say.
std::map<uint32_t, NicSettings> make_other_nics(const Draft& draft, const HostNames& hosts);

// Throws WrongKey.
WorkloadSettings make_workload_settings(const std::string& name, const WorkloadDraft& draft,
                                        const HostNames& hosts,
                                        const std::filesystem::path& directory, TimeNs duration_ns);

}  // namespace rocemu::experiment
